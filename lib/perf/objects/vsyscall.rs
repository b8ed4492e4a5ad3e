//! The page of functions that the kernel provides at the same address in every process of x86-64 (`[vsyscall]`).
//!
//! No thread executes its code. The kernel executes a function itself when a thread enters it, and lets the thread return. So a
//! thread that is there is at the entry of a function, with the return address at its stack pointer.

/// The name of the page in `/proc/PID/maps`.
pub(super) const NAME: &[u8] = b"[vsyscall]";

/// The entries of `gettimeofday`, `time` and `getcpu` (`arch/x86/include/uapi/asm/vsyscall.h`).
const ENTRIES: [u64; 3] = [0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_0400, 0xffff_ffff_ff60_0800];

/// True for the entry of a function.
pub fn is_vsyscall(address: u64) -> bool {
    ENTRIES.contains(&address)
}
