//! State of other processes as `/proc` shows it.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::eventually;

/// A process that a test started. It is killed when the value is dropped.
pub struct Background(Child);

impl Background {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Starts a process that sleeps for longer than any test takes, and waits until it sleeps.
    pub fn sleeping() -> Self {
        let process = Self::start(super::command("sleep").arg("100000"));
        let stat = format!("/proc/{}/stat", process.pid());
        assert!(eventually(|| std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains("(sleep) S "))));
        process
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Returns the CPU time of the process.
    pub fn cpu_time(&self) -> Duration {
        cpu_time(self.0.id())
    }

    /// Waits until the process has used more CPU time.
    pub fn wait_for_cpu_time(&self, more: Duration) {
        let end = self.cpu_time() + more;
        assert!(eventually(|| self.cpu_time() >= end), "pid {} does not run", self.pid());
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command and returns the most memory that it had in RAM when it began to write its output, in bytes. The output must be
/// longer than a pipe holds: the process then waits for its reader.
pub fn memory_at_output(mut command: Command) -> u64 {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success(), "{command:?}");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.unwrap_or_else(|| panic!("{command:?}: too little output")).trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().unwrap() * 1024
}

/// Returns the CPU time of a process, which the kernel counts in ticks of 10 ms.
pub fn cpu_time(pid: u32) -> Duration {
    // utime and stime are fields 14 and 15. The name, field 2, may contain anything.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
    let stat = String::from_utf8_lossy(&stat);
    let fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// What a process used, by the kernel's account.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub cpu_time: Duration,
    /// Number of times it waited for something.
    pub voluntary_switches: u64,
}

impl Usage {
    /// Returns what the threads of a running process have used so far.
    pub fn of_running(pid: u32) -> Self {
        let mut usage = Self { cpu_time: Duration::ZERO, voluntary_switches: 0 };
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let read = |name: &str| std::fs::read_to_string(thread.as_ref().unwrap().path().join(name)).unwrap();
            let nanoseconds: u64 = read("schedstat").split_whitespace().next().unwrap().parse().unwrap();
            usage.cpu_time += Duration::from_nanos(nanoseconds);
            let switches: u64 = Status(read("status")).field("voluntary_ctxt_switches").parse().unwrap();
            usage.voluntary_switches += switches;
        }
        usage
    }

    /// Returns what was used since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_time: self.cpu_time.saturating_sub(earlier.cpu_time),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
        }
    }
}

/// Waits until a child exits and returns its CPU time.
#[allow(unsafe_code)]
pub fn wait_with_cpu_time(child: &Child) -> (ExitStatus, Duration) {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers are valid, and zeroes are a valid rusage.
    let usage = unsafe {
        assert_eq!(libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()), pid);
        usage.assume_init()
    };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    (ExitStatus::from_raw(status), duration(usage.ru_utime) + duration(usage.ru_stime))
}

/// The fields of `/proc/PID/status`.
pub struct Status(String);

impl Status {
    /// Reads the status of a process. All fields are empty if it does not exist.
    pub fn read(pid: u32) -> Self {
        let status = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        Self(String::from_utf8_lossy(&status).into_owned())
    }

    /// Returns a field by its name, as in `PPid`.
    pub fn field(&self, name: &str) -> &str {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_default().trim()
    }

    /// Returns true if the process has a handler for a signal.
    pub fn catches(&self, signal: i32) -> bool {
        self.has_signal("SigCgt", signal)
    }

    /// Returns true if the process ignores a signal.
    pub fn ignores(&self, signal: i32) -> bool {
        self.has_signal("SigIgn", signal)
    }

    /// Returns true if a signal was sent to the process and not yet delivered.
    pub fn is_pending(&self, signal: i32) -> bool {
        self.has_signal("ShdPnd", signal) || self.has_signal("SigPnd", signal)
    }

    fn has_signal(&self, set: &str, signal: i32) -> bool {
        u64::from_str_radix(self.field(set), 16).unwrap_or(0) & (1 << (signal - 1)) != 0
    }
}

/// Returns the numbers of all processes.
pub fn all_pids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
