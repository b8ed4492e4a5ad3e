//! The frames before a thread's name: its process, cgroup, container or CPU.

use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::Recording;
use crate::markers;
use crate::perf::event::{Event, Stamp};

/// Separates labels in the name of a root. Names of threads do not contain it.
pub const SEPARATOR: u8 = 0;

/// Number of hexadecimal digits of a container's ID that are shown, as container engines do.
const SHORT_ID: usize = 12;

/// Number of hexadecimal digits of a container's ID.
const LONG_ID: usize = 64;

/// A property of a thread that is shown before its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootLabel {
    /// The process ID.
    Pid,
    /// The thread ID.
    Tid,
    /// The CPU on which the thread ran.
    Cpu,
    /// The path of the cgroup.
    Cgroup,
    /// The container, by the first digits of its ID.
    Container,
}

/// The properties that are shown before the name of a thread, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootLabels([Option<RootLabel>; 5]);

impl FromStr for RootLabels {
    type Err = String;

    /// Parses a list such as `container,pid`. `comm` at its end is the name of the thread, which is always there.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut labels = Self::default();
        for (index, name) in text.strip_suffix(",comm").unwrap_or(text).split(',').enumerate() {
            let label = match name {
                "pid" => RootLabel::Pid,
                "tid" => RootLabel::Tid,
                "cpu" => RootLabel::Cpu,
                "cgroup" => RootLabel::Cgroup,
                "container" => RootLabel::Container,
                _ => return Err("expected a list of pid, tid, cpu, cgroup and container".to_owned()),
            };
            match labels.0.get_mut(index) {
                Some(place) if !labels_contain(text, name, index) => *place = Some(label),
                _ => return Err(format!("{name} is given more than once")),
            }
        }
        Ok(labels)
    }
}

/// True if one of the first `count` names of a list is this one.
fn labels_contain(list: &str, name: &str, count: usize) -> bool {
    list.split(',').take(count).any(|other| other == name)
}

impl RootLabels {
    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.0[0].is_none()
    }
}

/// The cgroups of processes.
#[derive(Debug, Default)]
pub(super) struct Cgroups(FxHashMap<u32, Box<[u8]>>);

impl Cgroups {
    /// Gives a new process the cgroup of its parent, and forgets that of a process that runs another program: it is read
    /// again.
    pub(super) fn note_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Fork { pid, parent_pid, .. } if pid != parent_pid => match self.0.get(parent_pid).cloned() {
                Some(cgroup) => drop(self.0.insert(*pid, cgroup)),
                None => drop(self.0.remove(pid)),
            },
            Event::Comm { pid, exec: true, .. } => drop(self.0.remove(pid)),
            _ => {}
        }
    }

    /// Forgets other processes.
    pub(super) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.0.retain(|pid, _| is_kept(*pid));
    }

    /// Returns the path of the cgroup of a process, which is read when it is asked for first.
    fn path(&mut self, pid: u32, read: fn(u32) -> Option<Vec<u8>>) -> &[u8] {
        self.0.entry(pid).or_insert_with(|| read(pid).unwrap_or_else(|| markers::UNKNOWN.to_vec()).into())
    }
}

impl Recording {
    /// Returns the name of a thread with the labels before it.
    pub(super) fn label_root(&mut self, stamp: Stamp, name: &[u8]) -> Vec<u8> {
        let mut root = Vec::new();
        for label in self.options.roots.0.into_iter().flatten() {
            let read = self.options.running.map_or((|_| None) as fn(u32) -> Option<Vec<u8>>, |running| running.cgroup);
            match label {
                RootLabel::Pid => root.extend(format!("pid-{}", stamp.pid.cast_signed()).into_bytes()),
                RootLabel::Tid => root.extend(format!("tid-{}", stamp.tid.cast_signed()).into_bytes()),
                RootLabel::Cpu => root.extend(format!("cpu-{}", stamp.cpu).into_bytes()),
                RootLabel::Cgroup => root.extend_from_slice(self.cgroups.path(stamp.pid, read)),
                RootLabel::Container => root.extend_from_slice(container(self.cgroups.path(stamp.pid, read))),
            }
            root.push(SEPARATOR);
        }
        root.extend_from_slice(name);
        root
    }
}

/// Returns the short ID of the innermost container in the path of a cgroup.
fn container(cgroup: &[u8]) -> &[u8] {
    let parts = cgroup.rsplit(|byte| !byte.is_ascii_hexdigit());
    let id = parts.into_iter().find(|part| part.len() == LONG_ID);
    id.map_or(markers::NO_CONTAINER, |id| &id[..SHORT_ID])
}

#[cfg(test)]
mod tests {
    use super::{RootLabel, RootLabels, container};
    use crate::perf::event::{Event, Stamp};
    use crate::perf::recording::{Options, Recording};
    use crate::perf::unwind::RunningProcesses;

    fn parse(text: &str) -> Result<Vec<RootLabel>, String> {
        text.parse::<RootLabels>().map(|labels| labels.0.into_iter().flatten().collect())
    }

    #[test]
    fn parses_lists() {
        assert_eq!(parse("container,pid"), Ok(vec![RootLabel::Container, RootLabel::Pid]));
        assert_eq!(parse("cpu,comm"), Ok(vec![RootLabel::Cpu]));
        for wrong in ["", "pid,pid", "comm,pid", "process", "pid,", "pid,tid,cpu,cgroup,container,pid"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn finds_the_innermost_container() {
        let (outer, inner) = ("a".repeat(64), "0123456789abcdef".repeat(4));
        let path = format!("/kubepods.slice/cri-{outer}.scope/docker/{inner}");
        assert_eq!(container(path.as_bytes()), b"0123456789ab");
        assert_eq!(container(b"/system.slice/ssh.service"), b"[no container]");
    }

    fn stamp(pid: u32) -> Stamp {
        Stamp { pid, tid: pid, ..Stamp::default() }
    }

    #[test]
    fn a_new_process_has_the_cgroup_of_its_parent() {
        let running = RunningProcesses {
            read: |_, _, _| 0,
            keeps_frame_pointers: |_| false,
            cgroup: |pid| (pid == 1).then(|| b"/one".to_vec()),
        };
        let roots = "cgroup,pid".parse().unwrap();
        let mut recording = Recording::new(Options { roots, running: Some(running), ..Options::default() });
        assert_eq!(recording.label_root(stamp(1), b"init"), b"/one\0pid-1\0init");
        recording.handle_event(stamp(1), Event::Fork { pid: 2, tid: 2, parent_pid: 1, parent_tid: 1 });
        assert_eq!(recording.label_root(stamp(2), b"a"), b"/one\0pid-2\0a");
        recording.handle_event(stamp(2), Event::Comm { pid: 2, tid: 2, exec: true, comm: b"b" });
        assert_eq!(recording.label_root(stamp(2), b"b"), b"[unknown]\0pid-2\0b");
    }
}
