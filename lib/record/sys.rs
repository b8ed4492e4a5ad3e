//! System calls that no crate here wraps. This file contains all unsafe code of recording.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// `PERF_EVENT_IOC_SET_OUTPUT`, `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Makes a counter write its records into the ring of another. Both must count on the same CPU.
pub fn share_ring(counter: &File, leader: &File) -> io::Result<()> {
    // SAFETY: both files stay open during the call, and the request takes a file descriptor by value.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, leader.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `PERF_EVENT_IOC_PERIOD`, `_IOW('$', 4, __u64)`.
const SET_PERIOD: libc::c_ulong = 0x4008_2404;

/// Changes the period of a counter, or its frequency if it was opened with one.
pub fn set_period(counter: &File, period: u64) {
    // SAFETY: the file is open and the request reads eight bytes. It may fail if the counter's thread has exited.
    unsafe { libc::ioctl(counter.as_raw_fd(), SET_PERIOD, &period) };
}

/// `PERF_EVENT_IOC_SET_BPF`, `_IOW('$', 8, __u32)`.
const SET_BPF: libc::c_ulong = 0x4004_2408;

/// Runs a BPF program for each sample of a counter, or each time that a counter's tracepoint is reached. If it returns 0,
/// the kernel drops the sample; at a tracepoint, that of all counters.
pub fn set_program(counter: &File, program: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both files stay open during the call, and the request takes a file descriptor by value.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_BPF, program.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The arguments of a link of a BPF program to a counter: the `BPF_LINK_CREATE` part of `union bpf_attr`.
#[repr(C)]
struct LinkArguments {
    program: u32,
    counter: u32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

/// Runs a BPF program for the samples of a counter, as [`set_program`] does, until the file that is returned is closed. The
/// program can read the cookie.
pub fn link_program(counter: &File, program: BorrowedFd<'_>, cookie: u64) -> io::Result<OwnedFd> {
    const CREATE_LINK: libc::c_int = 28; // BPF_LINK_CREATE
    const PERF_EVENT: u32 = 41; // BPF_PERF_EVENT
    let arguments = LinkArguments {
        program: program.as_raw_fd().cast_unsigned(),
        counter: counter.as_raw_fd().cast_unsigned(),
        attach_type: PERF_EVENT,
        flags: 0,
        cookie,
    };
    // SAFETY: both files stay open during the call, which reads the arguments.
    let link = unsafe { libc::syscall(libc::SYS_bpf, CREATE_LINK, &arguments, size_of::<LinkArguments>()) };
    if link < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system call has opened the file, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(link as RawFd) })
}

/// `PERF_EVENT_IOC_SET_FILTER`, `_IOW('$', 6, char *)`.
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// Makes a counter of a tracepoint count only the records for which an expression is true.
pub fn set_filter(counter: &File, expression: &CStr) -> io::Result<()> {
    // SAFETY: the file is open, and the request reads a string that ends with a zero byte.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, expression.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The arguments of an update of a BPF map: the `BPF_MAP_*_ELEM` part of `union bpf_attr`.
#[repr(C)]
struct UpdateArguments {
    map_fd: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Sets an element of a BPF map of files.
pub fn update_file_map(map: BorrowedFd<'_>, index: u32, file: RawFd) -> io::Result<()> {
    const UPDATE: libc::c_int = 2; // BPF_MAP_UPDATE_ELEM
    let (key, value) = (std::ptr::from_ref(&index) as u64, std::ptr::from_ref(&file) as u64);
    let arguments = UpdateArguments { map_fd: map.as_raw_fd().cast_unsigned(), key, value, flags: 0 };
    // SAFETY: the map's keys and values have 4 bytes, and both pointers are those of variables that outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, UPDATE, &arguments, size_of::<UpdateArguments>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A BPF array of numbers that is mapped into our memory.
pub struct MappedArray<T> {
    map: memmap2::MmapRaw,
    length: usize,
    numbers: std::marker::PhantomData<T>,
}

impl<T: Copy> MappedArray<T> {
    /// Maps an array of `length` numbers.
    pub fn open(array: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let map = memmap2::MmapOptions::new().len(length * size_of::<T>()).map_raw(array.as_raw_fd())?;
        Ok(Self { map, length, numbers: std::marker::PhantomData })
    }

    /// Writes numbers from an index on.
    ///
    /// # Panics
    /// Panics if they do not fit.
    pub fn write(&mut self, first: usize, numbers: impl ExactSizeIterator<Item = T>) {
        assert!(first <= self.length && numbers.len() <= self.length - first, "the caller checks the size");
        let start = self.map.as_mut_ptr().cast::<T>();
        for (index, number) in numbers.enumerate().take(self.length - first) {
            // SAFETY: the index is within the mapping, which is aligned to a page.
            unsafe { start.add(first + index).write_volatile(number) };
        }
    }
}

/// Waits until every CPU has left the non-preemptible kernel section that it may be in now, such as a context switch.
pub fn wait_for_cpus() {
    const GLOBAL: libc::c_int = 1; // MEMBARRIER_CMD_GLOBAL
    // SAFETY: takes three integers and no address.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if result < 0 {
        // The kernel refuses if some CPUs run without a tick (nohz_full). No switch takes longer than this.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The arguments of a batch operation: the `batch` part of `union bpf_attr`.
#[repr(C)]
struct BatchArguments {
    in_batch: *const u32,
    out_batch: *mut u32,
    keys: *mut libc::c_void,
    values: *mut libc::c_void,
    count: u32,
    map_fd: RawFd,
    element_flags: u64,
    flags: u64,
}

/// Reads all entries of a BPF hash map, and removes them from it if `delete` is set. It reads many entries a call;
/// iterating over the keys would take three calls an entry. Entries that were read before an error are kept. `K` and
/// `V` must have the sizes of the map's keys and values.
pub fn read_hash_map<K: aya::Pod, V: aya::Pod>(
    map: BorrowedFd<'_>,
    delete: bool,
    entries: &mut Vec<(K, V)>,
) -> io::Result<()> {
    let (mut capacity, mut position, mut retries) = (512, None, 0);
    loop {
        let entries_before = entries.len();
        let result = read_batch(map, delete, capacity, &mut position, entries);
        retries = if entries.len() > entries_before { 0 } else { retries };
        match result.map_err(|error| (error.raw_os_error(), error)) {
            Ok(()) => {}
            Err((Some(libc::ENOENT), _)) => return Ok(()),
            // The kernel reads a whole hash bucket at once, and this one does not fit.
            Err((Some(libc::ENOSPC), _)) => capacity *= 2,
            // The lock of a bucket is taken, or the kernel suspects a deadlock.
            Err((Some(libc::EBUSY | libc::EDEADLK | libc::ETIMEDOUT), _)) if retries < 100 => retries += 1,
            Err((_, error)) => return Err(error),
        }
    }
}

/// Reads up to `capacity` entries of a BPF hash map from a position on, and advances the position. `None` is the start.
fn read_batch<K: aya::Pod, V: aya::Pod>(
    map: BorrowedFd<'_>,
    delete: bool,
    capacity: usize,
    position: &mut Option<u32>,
    entries: &mut Vec<(K, V)>,
) -> io::Result<()> {
    const LOOKUP: libc::c_int = 24; // BPF_MAP_LOOKUP_BATCH; 25 is BPF_MAP_LOOKUP_AND_DELETE_BATCH
    let (mut keys, mut values) = (Vec::<K>::with_capacity(capacity), Vec::<V>::with_capacity(capacity));
    let mut next_position = position.unwrap_or(0);
    let mut arguments = BatchArguments {
        in_batch: position.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
        out_batch: &mut next_position,
        keys: keys.as_mut_ptr().cast(),
        values: values.as_mut_ptr().cast(),
        count: capacity as u32,
        map_fd: map.as_raw_fd(),
        element_flags: 0,
        flags: 0,
    };
    let command = LOOKUP + libc::c_int::from(delete);
    // SAFETY: the file is open and all pointers point to our own memory, which has room for `count` keys and values.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &mut arguments, size_of::<BatchArguments>()) };
    let result = if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let code = result.as_ref().err().map(io::Error::raw_os_error);
    if code.is_none_or(|code| code.is_some_and(|code| PARTIAL_READ_ERRORS.contains(&code))) {
        // SAFETY: the kernel wrote `count` keys and values, which fit, and any bytes are a valid `Pod`.
        unsafe {
            keys.set_len(arguments.count as usize);
            values.set_len(arguments.count as usize);
        }
        entries.extend(keys.into_iter().zip(values));
        *position = Some(next_position);
    }
    result
}

/// Errors after which the kernel has set the count and position of a batch: the end of the map, a bucket that does not
/// fit, and a lock that it could not take.
const PARTIAL_READ_ERRORS: [libc::c_int; 5] = [libc::ENOENT, libc::ENOSPC, libc::EBUSY, libc::EDEADLK, libc::ETIMEDOUT];

/// Returns the CPU time that this process has used.
pub fn own_cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.try_into().unwrap_or_default()
}

/// Returns the CPU time in nanoseconds that the threads of a process have used, with those that have exited. `None` if
/// there is no such process.
pub fn process_cpu_time(pid: u32) -> Option<u64> {
    const CPUCLOCK_SCHED: libc::clockid_t = 2;
    // The ID of the clock of a process, as `clock_getcpuclockid(3)` makes it.
    let clock = !pid.cast_signed() << 3 | CPUCLOCK_SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then_some(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// Raises the soft limit of open files to the hard limit: each counter is a file.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// The usage of a child that has exited, with its own children that were waited for.
#[derive(Clone, Copy, Debug)]
pub struct ChildUsage {
    /// The CPU time in nanoseconds.
    pub cpu_time: u64,
    /// The number of times that a thread went to sleep.
    pub sleeps: u64,
}

/// Returns what a child used. `None` if it has not exited. It can still be waited for.
pub fn exited_child_usage(pid: u32) -> Option<ChildUsage> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
    // SAFETY: both pointers are those of variables that outlive the call, which zeros are valid values of.
    let (result, info, usage) = unsafe {
        let result = libc::syscall(libc::SYS_waitid, libc::P_PID, pid, info.as_mut_ptr(), options, usage.as_mut_ptr());
        (result, info.assume_init(), usage.assume_init())
    };
    let times = [usage.ru_utime, usage.ru_stime];
    let cpu_time = times.iter().map(|time| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000).sum();
    let sleeps = u64::try_from(usage.ru_nvcsw).unwrap_or(0);
    (result == 0 && info.si_signo == libc::SIGCHLD).then_some(ChildUsage { cpu_time, sleeps })
}

/// Makes a command suspend itself between fork and exec: it writes its PID to the pipe `report` and reads a byte from
/// the pipe `resume`. If it reads none, it exits. `parent_ends` are our own ends of the two pipes.
///
/// From then on the command gets a SIGTERM when the thread ends that called [`Command::spawn`].
pub fn suspend_before_exec(command: &mut Command, report: OwnedFd, resume: OwnedFd, parent_ends: [RawFd; 2]) {
    // SAFETY: between fork and exec only close, prctl, getpid, write, read and _exit are called, all async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            suspend(&report, &resume, parent_ends);
            Ok(())
        })
    };
}

/// Suspends this process as described in [`suspend_before_exec`]. Calls async-signal-safe functions alone.
fn suspend(report: &OwnedFd, resume: &OwnedFd, parent_ends: [RawFd; 2]) {
    for fd in parent_ends {
        // SAFETY: the child does not use its copies. It must close them to see when the parent closes its own.
        unsafe { libc::close(fd) };
    }
    // If the parent has ended already, there is nothing to read from `resume`.
    // SAFETY: takes two integers and no address.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    let pid = std::process::id().to_le_bytes();
    let mut byte = [0u8; 1];
    // SAFETY: each buffer has the length that is passed with it, and both files are open.
    let (written, read) = unsafe {
        let written = libc::write(report.as_raw_fd(), pid.as_ptr().cast(), pid.len());
        (written, libc::read(resume.as_raw_fd(), byte.as_mut_ptr().cast(), byte.len()))
    };
    if written != 4 || read != 1 {
        // The parent may have exited, so that there is nobody to report an error to.
        // SAFETY: this process has nothing left to do.
        unsafe { libc::_exit(127) };
    }
}

/// A user, as the user database describes it.
#[derive(Clone, Debug)]
pub struct User {
    name: CString,
    id: libc::uid_t,
    groups: Vec<libc::gid_t>,
    group: libc::gid_t,
    home: OsString,
}

impl User {
    /// Looks a user up by name.
    pub fn lookup(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        let mut text = vec![0; 64 * 1024];
        let (mut entry, mut found) = (MaybeUninit::<libc::passwd>::uninit(), std::ptr::null_mut());
        // SAFETY: the buffers are ours and have the lengths that are passed. `found` is null or points to `entry`,
        // whose strings are in `text` and end with a zero byte. All are read before either buffer is dropped.
        let (id, group, home) = unsafe {
            libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), text.as_mut_ptr(), text.len(), &mut found);
            let entry = found.as_ref()?;
            let home = CStr::from_ptr(entry.pw_dir).to_bytes();
            (entry.pw_uid, entry.pw_gid, OsStr::from_bytes(home).to_owned())
        };
        let (mut groups, mut count) = (vec![0; 1024], 1024);
        // SAFETY: `groups` has room for `count` groups.
        let found = unsafe { libc::getgrouplist(name.as_ptr(), group, groups.as_mut_ptr(), &mut count) };
        groups.truncate(usize::try_from(found).ok()?);
        Some(Self { name, id, groups, group, home })
    }

    /// Gives this process the user's IDs and groups.
    fn become_user(&self) -> io::Result<()> {
        // SAFETY: three system calls on values that outlive them.
        let result = unsafe {
            match libc::setgroups(self.groups.len(), self.groups.as_ptr()) {
                0 => match libc::setgid(self.group) {
                    0 => libc::setuid(self.id),
                    error => error,
                },
                error => error,
            }
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Makes a command run as a user, with the groups and the home directory of a login.
pub fn run_as(command: &mut Command, user: User) {
    let name = OsStr::from_bytes(user.name.to_bytes());
    command.env("USER", name).env("LOGNAME", name).env("HOME", &user.home);
    // SAFETY: between fork and exec only setgroups, setgid and setuid are called, all async-signal-safe.
    unsafe { command.pre_exec(move || user.become_user()) };
}

/// Reads memory of another process with `process_vm_readv`, and returns the number of bytes that were read.
pub fn read_process_memory(pid: u32, address: u64, bytes: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the local buffer is ours and has the length that is passed. The remote address belongs to the other
    // process, and the kernel checks it.
    let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &local, 1, &remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}
