//! Explains why the kernel refuses to count: the setting that forbids it, and the command that changes it.

use std::fs;
use std::io;

use super::counters::clock_parts;
use super::counters::sampling::{CallGraph, Rate, Sampling};
use super::cpus::online_cpus;
use super::events::spec::EventSpec;
use super::target::{self, Target};
use crate::bytes::read_lossy;
use crate::diagnostics::plural;
use crate::{Error, io_error_text};

/// Number of files that are open beside counters: standard streams, and those that wait for counters and signals.
const OTHER_FILES: usize = 24;

/// The largest number of files of a BPF program, its maps and links.
const FILES_OF_PROGRAM: usize = 24;

/// Returns the error for a counter that could not be opened. `event` is the index of its event.
pub fn counter_error(error: &io::Error, target: &Target, sampling: &Sampling, event: usize) -> Error {
    let event = &sampling.events[event];
    let name = event.spec.name();
    let hertz = if let Rate::Frequency(hertz) = event.rate { hertz } else { 0 };
    Error::System(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if sampling.record_switches && paranoid_level() > 1 => {
            format!("--off-cpu, --wall and --latency need kernel events: {}", paranoid_advice(1))
        }
        Some(libc::EACCES | libc::EPERM) if sampling.needs_kernel() && paranoid_level() > 1 => {
            let kernel_event = sampling.events.iter().find(|event| event.spec.excluded.user);
            let name = kernel_event.map_or(name, |event| event.spec.name());
            format!("-e {name} counts kernel events only: {}", paranoid_advice(1))
        }
        Some(libc::EACCES | libc::EPERM) if event.spec.is_uprobe() && !may_probe() => {
            format!("-e {name}: uprobes need root, or CAP_PERFMON")
        }
        Some(libc::EACCES | libc::EPERM) => permission_denied(target),
        Some(libc::ESRCH) => "the process exited before it could be recorded".to_owned(),
        Some(libc::EMFILE) => too_many_files(target, sampling, online_cpus().len()),
        Some(libc::ENOSYS) => syscall_blocked(),
        Some(libc::EINVAL) if hertz > max_sample_rate() => {
            format!(
                "-F {hertz} is above kernel.perf_event_max_sample_rate={}; use a lower -F, or raise the sysctl",
                max_sample_rate()
            )
        }
        Some(libc::EOVERFLOW) => {
            let requested = sampling.max_stack.unwrap_or(0);
            format!(
                "--max-stack {requested} is above kernel.perf_event_max_stack={}; use a lower --max-stack, or raise the sysctl",
                max_stack()
            )
        }
        // The kernel gives the same errors for a directory that is not a cgroup of the perf_event controller and for an
        // event that it cannot count.
        Some(libc::EBADF | libc::ENOENT) if matches!(target, Target::Cgroup(_)) => format!(
            "cannot count {name} in this cgroup: its hierarchy has no perf_event controller \
             (use a cgroup2 or perf_event cgroup), or this machine cannot count {name}"
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL) if sampling.call_graph == CallGraph::BranchRecords => {
            "--call-graph lbr: this CPU or virtual machine has no branch records; use --call-graph dwarf".to_owned()
        }
        Some(libc::EOPNOTSUPP | libc::EINVAL) if event.spec.precise > 0 => {
            format!("-e {name}: this machine cannot sample as precisely; use fewer p")
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => format!(
            "-e {name}: this machine cannot count {name}, perhaps because it is virtual; -e cpu-clock works everywhere"
        ),
        Some(libc::EBUSY) => format!("-e {name}: another profiler is using the counter"),
        _ => format!("-e {name}: cannot count: {}", io_error_text(error)),
    })
}

/// Returns the error for the filter of a tracepoint, which the kernel checks.
pub fn filter_error(error: &io::Error, event: &EventSpec) -> Error {
    let filter = event.filter.as_deref().unwrap_or_default().to_string_lossy();
    if error.raw_os_error() != Some(libc::EINVAL) {
        return Error::System(format!("--filter {filter}: {}", io_error_text(error)));
    }
    let fields = event.tracepoint_fields().join(", ");
    let name = event.name();
    Error::Usage(format!(
        "--filter {filter}: the kernel rejects it; compare fields of {name} with numbers or \"strings\", as in \
         common_pid != 1 && FIELD > 2; its fields are {fields}"
    ))
}

/// The highest frequency at which the BPF program takes stacks. It needs 10 µs or more for one: at higher ones, the CPU would do
/// nothing else.
const MAX_STACK_RATE: u64 = 50_000;

/// Checks that a BPF program can take stacks as often as samples are taken.
///
/// # Errors
/// [`Error::Usage`] if it cannot.
pub fn check_rates(sampling: &Sampling) -> Result<(), Error> {
    for event in &sampling.events {
        let (option, hertz, advice) = match event.rate {
            Rate::Frequency(hertz) if hertz <= max_sample_rate() => (format!("-F {hertz}"), hertz, "lower -F"),
            Rate::Period(period @ 1..) if event.spec.is_clock() => {
                (format!("-c {period}"), 1_000_000_000 / period, "higher -c")
            }
            _ => continue,
        };
        if hertz > MAX_STACK_RATE {
            return Err(Error::Usage(format!(
                "{option}: the BPF program takes at most {MAX_STACK_RATE} stacks a second; use a {advice}, or --call-graph fp"
            )));
        }
    }
    Ok(())
}

/// Checks that CPUs exist and are online.
///
/// # Errors
/// [`Error::Invalid`] if one does not, or is not.
pub fn check_cpus_online(cpus: Option<&[u32]>) -> Result<(), Error> {
    let online = online_cpus();
    match cpus.unwrap_or_default().iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(Error::Invalid(format!("-C {cpu}: this CPU does not exist or is offline"))),
        None => Ok(()),
    }
}

/// Returns the message if the counters are more than the files that may be open.
fn too_many_files(target: &Target, sampling: &Sampling, online: usize) -> String {
    let (threads, cpus) = (target.running_threads().len(), sampling.cpus.as_ref().map_or(online, Vec::len));
    let cpus_text = plural(cpus as u64, "CPU");
    // One for each event, one for side-band records, and one for switches.
    let others = 1 + usize::from(sampling.record_switches);
    let (owners, needed, advice) = if sampling.counts_in_threads(target) {
        let threads_text = plural(threads.max(1) as u64, "thread");
        let per_cpu = threads.max(1) * (sampling.events.len() + others);
        (format!("{threads_text} on {cpus_text}"), cpus * per_cpu + OTHER_FILES, ", or use -a")
    } else {
        let per_cpu = sampling.events.len() * clock_parts::COUNTERS + others + 2;
        let program = if sampling.takes_stacks { FILES_OF_PROGRAM } else { 0 };
        (format!("the counters of {cpus_text}"), cpus * per_cpu + OTHER_FILES + program, "")
    };
    let limit = open_file_limit();
    format!("too many open files: {owners} need {needed}, the limit is {limit}; run: ulimit -n {needed}{advice}")
}

/// Returns the note for stacks that lack their kernel frames.
pub fn kernel_frames_note() -> String {
    format!("kernel frames left out: {}", paranoid_advice(1))
}

/// Returns the note for calls that are missing because the BPF program does not select them.
pub fn new_threads_note() -> String {
    "uprobe: calls in threads and processes that start later are missing; -a counts all".to_owned()
}

/// Returns the note for rings that are smaller than preferred, with their size in KiB.
pub fn small_rings_note(kib: usize) -> String {
    format!("ring buffers reduced to {kib} KiB per CPU by the locked-memory limit {}", locked_memory_limits())
}

/// Returns the error for a ring that could not be mapped.
pub fn ring_error(error: &io::Error) -> Error {
    Error::System(match error.raw_os_error() {
        Some(libc::EPERM) => format!(
            "cannot allocate ring buffers: locked-memory limit reached {}, which all recordings of a user share; \
             use a smaller -m, or raise the limit",
            locked_memory_limits()
        ),
        _ => format!("cannot allocate ring buffers: {}", io_error_text(error)),
    })
}

fn locked_memory_limits() -> String {
    let limit = read_setting("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or(0);
    format!("(kernel.perf_event_mlock_kb={limit}, ulimit -l)")
}

/// Says what the paranoid level is, and how to lower it to the one that is needed.
fn paranoid_advice(needed: i64) -> String {
    format!(
        "perf_event_paranoid is {}; run: sudo sysctl kernel.perf_event_paranoid={needed} \
         (or run fg-record with sudo or CAP_PERFMON)",
        paranoid_level()
    )
}

fn permission_denied(target: &Target) -> String {
    let level = paranoid_level();
    match target {
        Target::System if level > 0 => format!("-a: cannot record all CPUs: {}", paranoid_advice(0)),
        Target::Cgroup(_) if level > 0 => format!("--cgroup: cannot record a cgroup: {}", paranoid_advice(0)),
        Target::Processes { .. } | Target::Threads(_) => {
            let pids = target.running_processes();
            let pid = pids.iter().find(|pid| !is_own_process(**pid)).or(pids.first());
            let process = pid.map_or(String::new(), |pid| target::describe_process(*pid));
            format!(
                "cannot attach to pid {process}: permission denied; run fg-record as root or as the process's owner"
            )
        }
        _ if level > 2 => format!("cannot record: {}", paranoid_advice(2)),
        _ => syscall_blocked(),
    }
}

fn syscall_blocked() -> String {
    "perf_event_open is blocked, perhaps by a container's seccomp filter; with Docker use --cap-add PERFMON \
     (or --security-opt seccomp=unconfined)"
        .to_owned()
}

/// True if we have the capabilities that a uprobe needs.
fn may_probe() -> bool {
    const CAP_PERFMON: u32 = 38;
    const CAP_SYS_ADMIN: u32 = 21;
    let status = read_lossy("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    effective.is_some_and(|bits| bits & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN) != 0)
}

fn is_own_process(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

fn paranoid_level() -> i64 {
    read_setting("/proc/sys/kernel/perf_event_paranoid").unwrap_or(2)
}

pub fn max_sample_rate() -> u64 {
    let rate = read_setting("/proc/sys/kernel/perf_event_max_sample_rate");
    rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(u64::MAX)
}

/// Returns the largest number of addresses that the kernel records of a stack.
pub fn max_stack() -> usize {
    let depth = read_setting("/proc/sys/kernel/perf_event_max_stack");
    depth.and_then(|depth| usize::try_from(depth).ok()).unwrap_or(127)
}

/// Returns the number of branch records that the CPU has: 32 on current ones.
pub fn max_branches() -> usize {
    let depth = read_setting("/sys/bus/event_source/devices/cpu/caps/branches");
    depth.and_then(|depth| usize::try_from(depth).ok()).filter(|depth| *depth > 0).unwrap_or(32)
}

pub fn open_file_limit() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or("unlimited".to_owned(), |limit| limit.to_string())
}

fn read_setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
