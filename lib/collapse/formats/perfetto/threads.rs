//! The names of processes and threads in a trace.

use rustc_hash::FxHashMap;

use crate::protobuf::{Fields, read_messages, read_numbers};

/// The names of processes and threads, by their IDs.
#[derive(Default)]
pub(super) struct Threads<'a> {
    processes: FxHashMap<u64, &'a [u8]>,
    threads: FxHashMap<u64, &'a [u8]>,
}

/// Returns the process ID and the thread ID of a thread's description.
pub(super) fn parse_thread(message: &[u8]) -> (u64, u64) {
    read_numbers(message, [1, 2]).map_or((0, 0), |[pid, tid]| (pid, tid))
}

impl<'a> Threads<'a> {
    /// Adds a snapshot of processes and threads.
    pub(super) fn add_process_tree(&mut self, message: &'a [u8]) {
        for (number, value) in Fields::new(message).flatten() {
            let Some(inner) = value.bytes() else { continue };
            match number {
                // The process ID, and the words of the command.
                1 => {
                    if let (Some([pid]), Some(command)) = (read_numbers(inner, [1]), read_messages(inner, 3).next()) {
                        self.add_process(pid, command);
                    }
                }
                2 => {
                    if let (Some([tid]), Some(name)) = (read_numbers(inner, [1]), read_messages(inner, 2).next()) {
                        self.add_name(tid, name);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the description of a thread.
    pub(super) fn add_thread(&mut self, message: &'a [u8]) {
        let (_, tid) = parse_thread(message);
        if let Some(name) = read_messages(message, 5).next() {
            self.add_name(tid, name);
        }
    }

    /// Adds the description of a track, which may be that of a process or a thread.
    pub(super) fn add_track(&mut self, message: &'a [u8]) {
        read_messages(message, 4).for_each(|thread| self.add_thread(thread));
        for process in read_messages(message, 3) {
            if let (Some([pid]), Some(name)) = (read_numbers(process, [1]), read_messages(process, 6).next()) {
                self.add_process(pid, name);
            }
        }
    }

    fn add_process(&mut self, pid: u64, command: &'a [u8]) {
        if !command.is_empty() {
            let file = command.rsplit(|byte| *byte == b'/').next().unwrap_or(command);
            self.processes.insert(pid, file);
        }
    }

    fn add_name(&mut self, tid: u64, name: &'a [u8]) {
        if !name.is_empty() {
            self.threads.insert(tid, name);
        }
    }

    /// Returns the name of a thread, else of its process; empty if both are unknown.
    pub(super) fn name(&self, pid: u64, tid: u64) -> &'a [u8] {
        self.threads.get(&tid).copied().unwrap_or_else(|| self.process(pid))
    }

    /// Returns the name of a process; empty if it is unknown.
    pub(super) fn process(&self, pid: u64) -> &'a [u8] {
        self.processes.get(&pid).or_else(|| self.threads.get(&pid)).copied().unwrap_or_default()
    }
}

/// Returns the ID of a process or thread; `None` for 0, which means that it is not known.
pub(super) fn to_id(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| *number > 0)
}
