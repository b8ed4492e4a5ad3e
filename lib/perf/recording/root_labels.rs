//! The frames before a thread's name: its process, cgroup, container or CPU.

use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::Recording;
use crate::markers;
use crate::perf::event::{Event, Sample, SentContext, StackRecord, Stamp};
use crate::perf::mappings::Mapping;
use crate::perf::thread_context::{AttributeValue, ThreadContext};
use crate::profile::FrameId;

/// Separates labels in the name of a root. Names of threads do not contain it.
pub const SEPARATOR: u8 = 0;

/// Number of hexadecimal digits of a container's ID that are shown, as container engines do.
const SHORT_ID: usize = 12;

/// The names of labels, in words.
const NAMES: &str = "pid, tid, cpu, cgroup, container, task, trace, span and attr:NAME";

/// Number of hexadecimal digits of a container's ID.
const LONG_ID: usize = 64;

/// A property of a thread that is shown before its name.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The name of the asyncio task that the thread runs.
    Task,
    /// The ID of the trace that the thread works on, as it publishes it.
    Trace,
    /// The ID of the span that the thread works on.
    Span,
    /// An attribute of what the thread works on.
    Attribute(Box<str>),
}

/// The properties that are shown before the name of a thread, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootLabels(Vec<RootLabel>);

impl FromStr for RootLabels {
    type Err = String;

    /// Parses a list such as `container,pid`. `comm` at its end is the name of the thread, which is always there.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut labels = Vec::new();
        for name in text.strip_suffix(",comm").unwrap_or(text).split(',') {
            let label = match name {
                "pid" => RootLabel::Pid,
                "tid" => RootLabel::Tid,
                "cpu" => RootLabel::Cpu,
                "cgroup" => RootLabel::Cgroup,
                "container" => RootLabel::Container,
                "task" => RootLabel::Task,
                "trace" => RootLabel::Trace,
                "span" => RootLabel::Span,
                _ => match name.strip_prefix("attr:").filter(|attribute| !attribute.is_empty()) {
                    Some(attribute) => RootLabel::Attribute(attribute.into()),
                    None => return Err(format!("expected a list of {NAMES}")),
                },
            };
            if labels.contains(&label) {
                return Err(format!("{name} is given more than once"));
            }
            labels.push(label);
        }
        Ok(Self(labels))
    }
}

impl std::fmt::Display for RootLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pid => "pid",
            Self::Tid => "tid",
            Self::Cpu => "cpu",
            Self::Cgroup => "cgroup",
            Self::Container => "container",
            Self::Task => "task",
            Self::Trace => "trace",
            Self::Span => "span",
            Self::Attribute(name) => return write!(f, "attr:{name}"),
        })
    }
}

impl RootLabels {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the tasks of threads are shown.
    pub fn has_task(&self) -> bool {
        self.0.contains(&RootLabel::Task)
    }

    /// Returns the first label that the BPF program reads.
    pub fn read_label(&self) -> Option<&RootLabel> {
        self.0.iter().find(|label| **label == RootLabel::Task).or_else(|| self.context_label())
    }

    /// Returns the first label that a thread publishes itself.
    pub fn context_label(&self) -> Option<&RootLabel> {
        self.0.iter().find(|label| matches!(label, RootLabel::Trace | RootLabel::Span | RootLabel::Attribute(_)))
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

/// A thread's context, or the marker that is shown instead.
#[derive(Clone, Copy)]
enum ContextLabel<'a> {
    Context(ThreadContext<'a>),
    /// This marker, because there is no context.
    Marker(&'static [u8]),
}

impl<'a> ContextLabel<'a> {
    fn id_or_marker(self, id: impl FnOnce(&ThreadContext<'a>) -> Option<Vec<u8>>) -> Vec<u8> {
        match self {
            Self::Context(context) => id(&context).unwrap_or_else(|| markers::NO_SPAN.to_vec()),
            Self::Marker(marker) => marker.to_vec(),
        }
    }
}

impl Recording {
    /// Returns the name of a thread with the labels before it.
    pub(super) fn label_root(&mut self, stamp: Stamp, sample: Option<&Sample<'_>>, name: &[u8]) -> Vec<u8> {
        let mut root = Vec::new();
        let labels = std::mem::take(&mut self.options.roots);
        let context = labels.context_label().map(|_| self.thread_context(stamp, sample));
        let context = context.as_ref().unwrap_or(&ContextLabel::Marker(markers::UNKNOWN));
        for label in &labels.0 {
            let read = self.options.running.map_or((|_| None) as fn(u32) -> Option<Vec<u8>>, |running| running.cgroup);
            match label {
                // The kernel's idle threads are those of process 0.
                RootLabel::Pid if stamp.pid == 0 && stamp.tid != 0 => root.extend(markers::UNKNOWN),
                RootLabel::Pid => root.extend(format!("pid-{}", stamp.pid.cast_signed()).into_bytes()),
                RootLabel::Tid => root.extend(format!("tid-{}", stamp.tid.cast_signed()).into_bytes()),
                RootLabel::Cpu => root.extend(format!("cpu-{}", stamp.cpu).into_bytes()),
                RootLabel::Cgroup => root.extend_from_slice(self.cgroups.path(stamp.pid, read)),
                RootLabel::Container => root.extend_from_slice(container(self.cgroups.path(stamp.pid, read))),
                RootLabel::Task => root.extend(self.task(stamp, sample)),
                RootLabel::Trace => root.extend_from_slice(&context.id_or_marker(ThreadContext::trace)),
                RootLabel::Span => root.extend_from_slice(&context.id_or_marker(ThreadContext::span)),
                RootLabel::Attribute(name) => root.extend(self.attribute(stamp, *context, name)),
            }
            root.push(SEPARATOR);
        }
        self.options.roots = labels;
        root.extend_from_slice(name);
        root
    }

    /// Returns the context of a thread at a sample.
    fn thread_context<'a>(&mut self, stamp: Stamp, sample: Option<&Sample<'a>>) -> ContextLabel<'a> {
        let record = sample.and_then(|sample| sample.user).map(|user| user.record);
        match record.map(|record| record.map_or(SentContext::Unknown, |record| self.sent_context(stamp, &record))) {
            Some(SentContext::Record(record)) => {
                ThreadContext::parse(record).map_or(ContextLabel::Marker(markers::UNKNOWN), ContextLabel::Context)
            }
            // The BPF program did not know the process yet, or its record was lost.
            Some(SentContext::Unknown) if self.publishes_contexts(stamp.pid) => ContextLabel::Marker(markers::UNKNOWN),
            // Threads of the kernel have no user stack.
            Some(SentContext::Unknown | SentContext::Absent) => ContextLabel::Marker(markers::NO_SPAN),
            None if sample.is_some() => ContextLabel::Marker(markers::NO_SPAN),
            None => ContextLabel::Marker(markers::UNKNOWN),
        }
    }

    /// Returns the context that the BPF program sent. It may have missed that of a library that was loaded since it was told
    /// of the mappings; after a library was unloaded, the record does not say when that was.
    fn sent_context<'a>(&mut self, stamp: Stamp, record: &StackRecord<'a>) -> SentContext<'a> {
        let sent = record.context();
        if sent != SentContext::Absent {
            return sent;
        }
        match self.thread_contexts.has_variable(&self.unpublished_mappings(stamp, record), &self.objects) {
            true => SentContext::Unknown,
            false => SentContext::Absent,
        }
    }

    /// Returns the mappings that the BPF program had not been told of when it made a record.
    fn unpublished_mappings(&self, stamp: Stamp, record: &StackRecord<'_>) -> Vec<Mapping> {
        self.processes.mappings_since(stamp.pid, record.told).collect()
    }

    /// Returns the task that the BPF program sent. It may have missed that of a module that was loaded since it was told of the
    /// mappings.
    fn sent_task<'a>(&mut self, stamp: Stamp, record: &StackRecord<'a>) -> SentContext<'a> {
        let sent = record.task();
        let is_missed = sent == SentContext::Absent
            && self.interpreters.have_tasks(&self.unpublished_mappings(stamp, record), &self.objects);
        if is_missed { SentContext::Unknown } else { sent }
    }

    /// Returns the name of the task that a thread runs, or a marker.
    fn task(&mut self, stamp: Stamp, sample: Option<&Sample<'_>>) -> Vec<u8> {
        let Some(sample) = sample else { return markers::UNKNOWN.to_vec() };
        // Threads of the kernel have no user stack.
        let Some(user) = sample.user else { return markers::NO_TASK.to_vec() };
        let sent = user.record.map_or(SentContext::Unknown, |record| self.sent_task(stamp, &record));
        match (self.interpreters.find(self.processes.mappings(stamp.pid), &self.objects), sent) {
            (None, _) | (_, SentContext::Absent) => markers::NO_TASK.to_vec(),
            (Some(interpreter), _) if interpreter.has_no_tasks() => markers::NO_TASK.to_vec(),
            (Some(interpreter), SentContext::Record(sent)) => interpreter
                .read_task_name(sent)
                .and_then(|name| label(&name))
                .unwrap_or_else(|| markers::UNKNOWN.to_vec()),
            (Some(_), SentContext::Unknown) => markers::UNKNOWN.to_vec(),
        }
    }

    /// Returns the value of an attribute in a thread's context, or a marker.
    fn attribute(&mut self, stamp: Stamp, context: ContextLabel<'_>, name: &str) -> Vec<u8> {
        let context = match context {
            ContextLabel::Context(context) => context,
            ContextLabel::Marker(marker) => return marker.to_vec(),
        };
        let (memory, running) = (self.memory(stamp.pid), self.options.running);
        let find_heads = || running.map_or_else(Vec::new, |running| (running.process_contexts)(stamp.pid));
        match self.thread_contexts.find_attribute(context, name, (memory, stamp.time), find_heads) {
            AttributeValue::Value(value) => label(value).unwrap_or_else(|| markers::NO_ATTRIBUTE.to_vec()),
            AttributeValue::Missing => markers::NO_ATTRIBUTE.to_vec(),
            AttributeValue::Unknown => markers::UNKNOWN.to_vec(),
        }
    }
}

impl Recording {
    /// Returns the ID of a stack with another root frame before its own.
    pub fn intern_below_root(&mut self, root: &[u8], stack: u32) -> u32 {
        let mut ids = self.stacks.get(stack).to_vec();
        let mut name = label(root).unwrap_or_else(|| markers::UNKNOWN.to_vec());
        name.push(SEPARATOR);
        name.extend_from_slice(self.comms.name(FrameId::from_index(ids[0])));
        ids[0] = self.intern_comm(&name);
        self.stacks.intern(&ids)
    }
}

/// Returns a text as a label. `None` if it is empty, as frames cannot be.
fn label(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let bytes = text.iter().map(|byte| if *byte == SEPARATOR { b'?' } else { *byte });
    (!text.is_empty()).then(|| bytes.collect())
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
        text.parse::<RootLabels>().map(|labels| labels.0)
    }

    #[test]
    fn parses_lists() {
        assert_eq!(parse("container,pid"), Ok(vec![RootLabel::Container, RootLabel::Pid]));
        assert_eq!(parse("cpu,comm"), Ok(vec![RootLabel::Cpu]));
        assert_eq!(parse("task,tid"), Ok(vec![RootLabel::Task, RootLabel::Tid]));
        let [route, other] = ["http.route", "b"].map(|name| RootLabel::Attribute(name.into()));
        assert_eq!(parse("attr:http.route,trace,attr:b"), Ok(vec![route, RootLabel::Trace, other]));
        for wrong in ["", "pid,pid", "comm,pid", "process", "pid,", "pid,tid,cpu,cgroup,container,pid", "attr:", "attr"]
        {
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
            process_contexts: |_| Vec::new(),
        };
        let roots = "cgroup,pid".parse().unwrap();
        let mut recording = Recording::new(Options { roots, running: Some(running), ..Options::default() });
        assert_eq!(recording.label_root(stamp(1), None, b"init"), b"/one\0pid-1\0init");
        recording.handle_event(stamp(1), Event::Fork { pid: 2, tid: 2, parent_pid: 1, parent_tid: 1 });
        assert_eq!(recording.label_root(stamp(2), None, b"a"), b"/one\0pid-2\0a");
        recording.handle_event(stamp(2), Event::Comm { pid: 2, tid: 2, exec: true, comm: b"b" });
        assert_eq!(recording.label_root(stamp(2), None, b"b"), b"[unknown]\0pid-2\0b");
    }
}
