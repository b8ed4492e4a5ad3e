//! The kernel's refusals in words: what it said, the setting behind it, and what changes it.

use std::fs;
use std::io;

use super::counters::sampling::{CallGraph, Rate, Sampling};
use super::cpus;
use super::target::{self, Target};
use crate::diagnostics::plural;
use crate::{Error, io_error_text};

/// What to say when a counter of an event, by its number, cannot be opened.
pub fn counter(error: &io::Error, target: &Target, sampling: &Sampling, event: usize) -> Error {
    let (metric, rate) = &sampling.metrics[event];
    let name = metric.name();
    let hertz = if let Rate::Frequency(hertz) = *rate { hertz } else { 0 };
    Error::System(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if sampling.switches && paranoid() > 1 => {
            in_kernel("time off the CPU is known to the kernel alone")
        }
        Some(libc::EACCES | libc::EPERM) if sampling.needs_kernel() && paranoid() > 1 => {
            let name = sampling.metrics.iter().find(|(metric, _)| metric.excluded.user).map_or(name, |(m, _)| m.name());
            in_kernel(&format!("{name} is counted in the kernel alone"))
        }
        Some(libc::EACCES | libc::EPERM) if metric.is_call() && !may_probe() => {
            format!("{name}: a probe in a program's code needs root, or CAP_PERFMON")
        }
        Some(libc::EACCES | libc::EPERM) => permission(target),
        Some(libc::ESRCH) => "the process ended before it could be recorded".to_owned(),
        Some(libc::EMFILE) => too_many_files(target, sampling, cpus::online_cpus().len()),
        Some(libc::ENOSYS) => blocked(),
        Some(libc::EINVAL) if hertz > max_sample_rate() => {
            format!("-F {hertz} is above kernel.perf_event_max_sample_rate={}", max_sample_rate())
        }
        Some(libc::EOVERFLOW) => {
            let asked = sampling.max_stack.unwrap_or(0);
            format!("--max-stack {asked} is above kernel.perf_event_max_stack={}", max_stack())
        }
        // What is no cgroup, and one of another controller alone: the kernel does not tell that from what it cannot count.
        Some(libc::EBADF | libc::ENOENT) if matches!(target, Target::Cgroup(_)) => format!(
            "cannot count {name} in this cgroup: it is of a hierarchy without perf_event (--cgroup takes one of cgroup2's, \
             or of perf_event's), or the machine does not count that"
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL) if sampling.call_graph == CallGraph::BranchRecords => {
            "this CPU or virtual machine keeps no branch records; use --call-graph dwarf".to_owned()
        }
        Some(libc::EOPNOTSUPP | libc::EINVAL) if metric.precise > 0 => {
            format!("this machine does not count {name} that precisely; leave out a p")
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            format!("this machine cannot count {name} (a virtual one?); -e cpu-clock works everywhere")
        }
        Some(libc::EBUSY) => "another profiler holds the counter".to_owned(),
        _ => format!("cannot count {name}: {}", io_error_text(error)),
    })
}

/// Refuses CPUs that are not there.
///
/// # Errors
/// [`Error::Invalid`].
pub fn absent(cpus: Option<&[u32]>) -> Result<(), Error> {
    let online = cpus::online_cpus();
    match cpus.unwrap_or_default().iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(Error::Invalid(format!("CPU {cpu} is not there, or is switched off"))),
        None => Ok(()),
    }
}

/// What to say when each thread needs more counters than files may be open.
fn too_many_files(target: &Target, sampling: &Sampling, online: usize) -> String {
    let (threads, cpus) = (target.running_threads().len(), sampling.cpus.as_ref().map_or(online, Vec::len));
    // One of each event, one of the side-band, one of switches where they are wanted.
    let each = sampling.metrics.len() + 1 + usize::from(sampling.switches);
    let needed = threads.max(1) * cpus * each + ALREADY_OPEN;
    format!(
        "needs {needed} open files ({} on {}), the limit is {}: raise it with ulimit -n {needed}, or use -a",
        plural(threads as u64, "thread"),
        plural(cpus as u64, "CPU"),
        open_files(),
    )
}

/// What is open beside counters: standard streams, and what waits for them and for signals.
const ALREADY_OPEN: usize = 24;

/// What to say when kernel frames have to be left out.
pub fn kernel_left_out() -> String {
    let level = paranoid();
    format!(
        "kernel frames left out: perf_event_paranoid is {level} (needs 1, or CAP_PERFMON). \
         Try: sudo sysctl kernel.perf_event_paranoid=1"
    )
}

/// What to say when the rings had to be made smaller.
pub fn rings_reduced(kib: usize) -> String {
    let allowed = setting("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or(0);
    format!(
        "ring buffers reduced to {kib} KiB a CPU: locked-memory limit (kernel.perf_event_mlock_kb={allowed}, ulimit -l)"
    )
}

/// What to say when there is no memory for rings at all.
pub fn rings(error: &io::Error) -> Error {
    let allowed = setting("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or(0);
    Error::System(match error.raw_os_error() {
        Some(libc::EPERM) => format!(
            "no memory for ring buffers: locked-memory limit (kernel.perf_event_mlock_kb={allowed}, ulimit -l), \
             which all recordings of a user share"
        ),
        _ => format!("no memory for ring buffers: {}", io_error_text(error)),
    })
}

fn in_kernel(what: &str) -> String {
    format!(
        "{what}: perf_event_paranoid is {} (needs 1, or CAP_PERFMON). Try: sudo sysctl kernel.perf_event_paranoid=1",
        paranoid()
    )
}

fn permission(target: &Target) -> String {
    let level = paranoid();
    match target {
        Target::System if level > 0 => format!(
            "cannot record all CPUs (-a): perf_event_paranoid is {level}, -a needs 0 or CAP_PERFMON. \
             Try: sudo sysctl kernel.perf_event_paranoid=0, or sudo fg-record -a"
        ),
        Target::Cgroup(_) if level > 0 => format!(
            "cannot record a cgroup: perf_event_paranoid is {level}, --cgroup needs 0 or CAP_PERFMON. \
             Try: sudo sysctl kernel.perf_event_paranoid=0, or sudo fg-record --cgroup"
        ),
        Target::Processes(pids) | Target::Threads(pids) => {
            let pid = pids.iter().find(|pid| !is_ours(**pid)).or(pids.first());
            let who = pid.map_or(String::new(), |pid| target::describe_process(*pid));
            format!("cannot attach to pid {who}: permission denied. Run as root, or as the process's owner")
        }
        _ if level > 2 => {
            format!(
                "perf_event_paranoid is {level}: needs 2, or CAP_PERFMON. Try: sudo sysctl kernel.perf_event_paranoid=2"
            )
        }
        _ => blocked(),
    }
}

fn blocked() -> String {
    "perf_event_open is blocked: seccomp in this container? Docker: --cap-add PERFMON \
     (or --security-opt seccomp=unconfined)"
        .to_owned()
}

/// Whether we have root's rights to the kernel's counters.
fn may_probe() -> bool {
    const CAP_PERFMON: u32 = 38;
    const CAP_SYS_ADMIN: u32 = 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    effective.is_some_and(|bits| bits & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN) != 0)
}

fn is_ours(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

fn paranoid() -> i64 {
    setting("/proc/sys/kernel/perf_event_paranoid").unwrap_or(2)
}

fn max_sample_rate() -> u64 {
    setting("/proc/sys/kernel/perf_event_max_sample_rate").and_then(|rate| u64::try_from(rate).ok()).unwrap_or(u64::MAX)
}

/// How many addresses the kernel writes of a stack at most.
pub fn max_stack() -> usize {
    setting("/proc/sys/kernel/perf_event_max_stack").and_then(|depth| usize::try_from(depth).ok()).unwrap_or(127)
}

/// How many calls the CPU keeps at most: 32 of today's.
pub fn max_branches() -> usize {
    let depth =
        setting("/sys/bus/event_source/devices/cpu/caps/branches").and_then(|depth| usize::try_from(depth).ok());
    depth.filter(|depth| *depth > 0).unwrap_or(32)
}

fn open_files() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or("unlimited".to_owned(), |limit| limit.to_string())
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
