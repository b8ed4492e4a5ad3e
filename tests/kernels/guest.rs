//! A machine that QEMU emulates, with nothing but a kernel, fg-record and a program to be recorded.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use crate::support::{Outcome, command, directory, run_bounded, run_command, tool};

/// The options of the machine. Its first serial port is the console, `init` writes to the second.
///
/// The CPU has no cmpxchg16b, which QEMU 7.2 emulates wrongly: in 4 of 14 boots of Linux 6.12 the flags were wrong
/// after it, and the kernel panicked. Without it, 0 of 10 did. One thread of QEMU runs both CPUs: with two, a CPU met
/// breakpoints that the other had removed (int3 in `__schedule`, where tracepoints are enabled), and 3 of 5 boots panicked.
const MACHINE: &str = "-accel tcg,thread=single -cpu max,-cx16 -smp 2 -m 1G -nic none -display none -no-reboot \
                       -serial file:console -serial file:results.tar";

/// The recordings that were made under a kernel.
pub struct GuestOutcomes {
    /// Of the program `callers`, for each depth.
    pub callers: Vec<Outcome>,
    /// Of who wakes a thread that sleeps.
    pub wakers: Outcome,
    /// Of the program `rare_blocks`, with a period of stacks.
    pub rare_blocks: Outcome,
    /// The recording of a process that sleeps already.
    pub sleeper: Outcome,
    /// Of the program `spans`.
    pub spans: Outcome,
    /// Of the system calls of a thread that sleeps.
    pub pairs: Outcome,
    /// Of the calls of a function in new threads and processes, by the program `sizes`.
    pub calls: Outcome,
}

/// Boots a kernel, and records the program `callers` once for each depth, a thread that sleeps, and the other programs.
///
/// # Errors
/// The console if the kernel panicked.
pub fn record(
    kernel: &Path,
    [callers, spans, rare_blocks, sizes]: [&str; 4],
    depths: &[usize],
) -> Result<GuestOutcomes, String> {
    let folder = directory();
    let folder = folder.path();
    let mut initramfs = command(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/initramfs"));
    initramfs.arg(folder.join("initramfs")).args([tool("fg-record"), callers, spans, rare_blocks, sizes]);
    run_command(initramfs, b"").ok();
    let depths: Vec<String> = depths.iter().map(usize::to_string).collect();
    let mut qemu = command("qemu-system-x86_64");
    qemu.current_dir(folder).args(MACHINE.split_whitespace()).arg("-kernel").arg(kernel).args(["-initrd", "initramfs"]);
    // The kernel passes what follows the dashes to its first process.
    qemu.args(["-append", &format!("console=ttyS0 panic=-1 quiet -- {}", depths.join(" "))]);
    run_bounded(qemu.stdin(Stdio::null()).stderr(Stdio::piped())).ok();
    let mut tar = command("tar");
    tar.args(["-x", "-f", "results.tar"]).current_dir(folder);
    if !run_command(tar, b"").status.success() {
        let console = String::from_utf8_lossy(&std::fs::read(folder.join("console")).unwrap()).into_owned();
        let panic = console.lines().find(|line| line.contains("Kernel panic"));
        return Err(format!("{}: {}\n{console}", kernel.display(), panic.unwrap_or("stopped early")));
    }
    Ok(GuestOutcomes {
        callers: depths.iter().map(|depth| read_outcome(folder, depth)).collect(),
        wakers: read_outcome(folder, "wakers"),
        rare_blocks: read_outcome(folder, "rare_blocks"),
        sleeper: read_outcome(folder, "sleeper"),
        spans: read_outcome(folder, "spans"),
        pairs: read_outcome(folder, "pairs"),
        calls: read_outcome(folder, "calls"),
    })
}

/// Reads the outcome of a recording from the files that `init` wrote.
fn read_outcome(folder: &Path, name: &str) -> Outcome {
    let read = |suffix: &str| std::fs::read(folder.join(format!("{name}.{suffix}"))).unwrap();
    let text = |suffix: &str| String::from_utf8(read(suffix)).unwrap();
    let code: i32 = text("status").trim().parse().unwrap();
    Outcome {
        command: format!("fg-record of {name}"),
        status: ExitStatus::from_raw(code << 8),
        stdout: read("stdout"),
        stderr: text("stderr"),
    }
}
