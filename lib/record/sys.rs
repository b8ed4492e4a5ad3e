//! The system calls that no crate here wraps. All that is unsafe in recording stands in this file.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// `PERF_EVENT_IOC_SET_OUTPUT`, `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Makes a counter write into another one's ring. Both must count on the same CPU.
pub fn share_ring(counter: &File, leader: &File) -> io::Result<()> {
    // SAFETY: both are open files for the length of the call, and the request takes a file descriptor by value.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, leader.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `PERF_EVENT_IOC_PERIOD`, `_IOW('$', 4, __u64)`.
const SET_PERIOD: libc::c_ulong = 0x4008_2404;

/// Gives a counter another period; or another frequency, if it has one.
pub fn set_period(counter: &File, period: u64) {
    // SAFETY: the file is open and the request reads eight bytes. A counter whose thread has gone may refuse.
    unsafe { libc::ioctl(counter.as_raw_fd(), SET_PERIOD, &period) };
}

/// Has this thread's signals of files come through a file instead: readable when one has come. Children that are started
/// by `Command` begin without what is blocked here.
pub fn receive_signals_of_files() -> io::Result<OwnedFd> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is ours, and made empty before it is used; what `signalfd` returns belongs to nobody else.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), libc::SIGIO);
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        match libc::signalfd(-1, signals.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            failed if failed < 0 => Err(io::Error::last_os_error()),
            file => Ok(OwnedFd::from_raw_fd(file)),
        }
    }
}

/// So much is read of such a file for each signal.
pub const SIGNAL_BYTES: usize = size_of::<libc::signalfd_siginfo>();

/// Has a file send its signals to this thread.
pub fn signal_this_thread(file: &File) -> io::Result<()> {
    const SET_OWNER: libc::c_int = 15; // F_SETOWN_EX, of `struct f_owner_ex`
    // SAFETY: takes nothing and cannot fail.
    let owner: [libc::c_int; 2] = [0, unsafe { libc::gettid() }]; // F_OWNER_TID and the thread
    // SAFETY: the file is open and the request reads two numbers.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), SET_OWNER, owner.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until no CPU is any more in what it was doing in the kernel without interruption, such as a switch.
#[cfg(feature = "bpf")]
pub fn wait_for_cpus() {
    const GLOBAL: libc::c_int = 1; // MEMBARRIER_CMD_GLOBAL
    // SAFETY: takes three numbers and no address.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if result < 0 {
        // Where CPUs run without a clock's tick the kernel does not wait for them; a switch takes no longer than this.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// What `bpf` is told of a batch: the part of `union bpf_attr` of that name.
#[cfg(feature = "bpf")]
#[repr(C)]
struct Batch {
    from: *const u32,
    to: *mut u32,
    keys: *mut libc::c_void,
    values: *mut libc::c_void,
    count: u32,
    table: RawFd,
    element_flags: u64,
    flags: u64,
}

/// Reads all of a hash table in the kernel, and takes it out if that is wanted: many entries a call, where to go from key
/// to key takes three calls an entry. What was read before a failure is among the entries. Keys and values must be as large
/// as the table's.
#[cfg(feature = "bpf")]
pub fn read_table<K: aya::Pod, V: aya::Pod>(
    table: std::os::fd::BorrowedFd<'_>,
    takes: bool,
    entries: &mut Vec<(K, V)>,
) -> io::Result<()> {
    let (mut room, mut place, mut refusals) = (512, None, 0);
    loop {
        let before = entries.len();
        let read = read_batch(table, takes, (room, &mut place), entries);
        refusals = if entries.len() > before { 0 } else { refusals };
        match read.map_err(|error| (error.raw_os_error(), error)) {
            Ok(()) => {}
            Err((Some(libc::ENOENT), _)) => return Ok(()),
            // Entries of one hash are read at once.
            Err((Some(libc::ENOSPC), _)) => room *= 2,
            // Somebody holds the lock of these entries, or seems to.
            Err((Some(libc::EBUSY | libc::EDEADLK | libc::ETIMEDOUT), _)) if refusals < 100 => refusals += 1,
            Err((_, error)) => return Err(error),
        }
    }
}

/// Reads no more entries than so many from a place on, and moves the place.
#[cfg(feature = "bpf")]
fn read_batch<K: aya::Pod, V: aya::Pod>(
    table: std::os::fd::BorrowedFd<'_>,
    takes: bool,
    (room, place): (usize, &mut Option<u32>),
    entries: &mut Vec<(K, V)>,
) -> io::Result<()> {
    const LOOKUP: libc::c_int = 24; // BPF_MAP_LOOKUP_BATCH; the next is BPF_MAP_LOOKUP_AND_DELETE_BATCH
    let (mut keys, mut values) = (Vec::<K>::with_capacity(room), Vec::<V>::with_capacity(room));
    let mut to = place.unwrap_or(0);
    let mut batch = Batch {
        from: place.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
        to: &mut to,
        keys: keys.as_mut_ptr().cast(),
        values: values.as_mut_ptr().cast(),
        count: room as u32,
        table: table.as_raw_fd(),
        element_flags: 0,
        flags: 0,
    };
    let command = LOOKUP + libc::c_int::from(takes);
    // SAFETY: the file is open and all places are ours; there is room for as many keys and values as is said.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &mut batch, size_of::<Batch>()) };
    let read = if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let has_begun = |error: &io::Error| error.raw_os_error().is_some_and(|code| WHILE_READING.contains(&code));
    if read.as_ref().err().is_none_or(has_begun) {
        // SAFETY: the kernel wrote so many of each, no more than there is room for, and any bytes make one.
        unsafe {
            keys.set_len(batch.count as usize);
            values.set_len(batch.count as usize);
        }
        entries.extend(keys.into_iter().zip(values));
        *place = Some(to);
    }
    read
}

/// With these the kernel ends reading when it has begun: at the end, for want of room, and where it does not get a lock.
#[cfg(feature = "bpf")]
const WHILE_READING: [libc::c_int; 5] = [libc::ENOENT, libc::ENOSPC, libc::EBUSY, libc::EDEADLK, libc::ETIMEDOUT];

/// The time that this process has spent on the CPU.
pub fn own_cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.try_into().unwrap_or_default()
}

/// Makes the command, once it is a process of its own but before it runs its program, send its number through `report`
/// and wait until something comes through `go`; if nothing does it never runs. `parents` are the ends of the two pipes
/// that belong to us.
pub fn hold(command: &mut Command, report: OwnedFd, go: OwnedFd, parents: [RawFd; 2]) {
    let wait = move || {
        for fd in parents {
            // SAFETY: in the child these are copies that nobody uses; closing them lets the child see our end close.
            unsafe { libc::close(fd) };
        }
        let number = std::process::id().to_le_bytes();
        let mut word = [0u8; 1];
        // SAFETY: the buffers are as long as is said, and both files are open.
        let (sent, came) = unsafe {
            let sent = libc::write(report.as_raw_fd(), number.as_ptr().cast(), number.len());
            (sent, libc::read(go.as_raw_fd(), word.as_mut_ptr().cast(), word.len()))
        };
        if sent != 4 || came != 1 {
            // Who started us may be gone by now, and with it whoever could be told.
            // SAFETY: nothing is left to be done in this process.
            unsafe { libc::_exit(127) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec only close, getpid, write, read and _exit are called, all async-signal-safe.
    unsafe { command.pre_exec(wait) };
}

/// A user as the system knows one.
#[derive(Clone, Debug)]
pub struct User {
    name: CString,
    id: libc::uid_t,
    groups: Vec<libc::gid_t>,
    group: libc::gid_t,
    home: OsString,
}

impl User {
    /// The user of that name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        let mut text = vec![0; 64 * 1024];
        let (mut entry, mut found) = (MaybeUninit::<libc::passwd>::uninit(), std::ptr::null_mut());
        // SAFETY: the places are ours and as long as is said. What is found points to the entry, whose texts lie in `text`
        // and end with zero bytes; all are read before either goes.
        let (id, group, home) = unsafe {
            libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), text.as_mut_ptr(), text.len(), &mut found);
            let entry = found.as_ref()?;
            let home = CStr::from_ptr(entry.pw_dir).to_bytes();
            (entry.pw_uid, entry.pw_gid, OsStr::from_bytes(home).to_owned())
        };
        let (mut groups, mut count) = (vec![0; 1024], 1024);
        // SAFETY: there is room for as many groups as is said.
        let found = unsafe { libc::getgrouplist(name.as_ptr(), group, groups.as_mut_ptr(), &mut count) };
        groups.truncate(usize::try_from(found).ok()?);
        Some(Self { name, id, groups, group, home })
    }
}

/// Makes the command run as a user, with the groups and the home folder that logging in would give.
pub fn run_as(command: &mut Command, user: User) {
    let name = OsStr::from_bytes(user.name.to_bytes());
    command.env("USER", name).env("LOGNAME", name).env("HOME", &user.home);
    let become_user = move || {
        // SAFETY: three system calls on values that this closure owns.
        let result = unsafe {
            match libc::setgroups(user.groups.len(), user.groups.as_ptr()) {
                0 => match libc::setgid(user.group) {
                    0 => libc::setuid(user.id),
                    failed => failed,
                },
                failed => failed,
            }
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec only setgroups, setgid and setuid are called, all async-signal-safe.
    unsafe { command.pre_exec(become_user) };
}

/// Reads the memory of other processes.
pub struct ProcessMemory;

impl crate::perf::unwind::Memory for ProcessMemory {
    fn read(&mut self, pid: u32, address: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
        // SAFETY: the local buffer is ours and as long as is said; the remote address is the other process's, and the
        // kernel checks it.
        let read = unsafe { libc::process_vm_readv(pid.cast_signed(), &local, 1, &remote, 1, 0) };
        usize::try_from(read).unwrap_or(0)
    }
}
