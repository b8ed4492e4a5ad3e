//! Tells where the kernel begins in a stack.

/// Returns true for functions with which the kernel begins, whose callees are all of the kernel.
pub fn is_kernel_entry(name: &[u8]) -> bool {
    const STARTS: [&[u8]; 6] =
        [b"entry_SYSCALL_", b"asm_exc_", b"asm_sysvec_", b"ret_from_fork", b"el0t_64_", b"secondary_startup_64"];
    const NAMES: [&[u8]; 13] = [
        b"do_syscall_64",
        b"asm_common_interrupt",
        b"system_call_fastpath",
        b"system_call",
        b"sysret_check",
        b"page_fault",
        b"common_interrupt",
        b"apic_timer_interrupt",
        b"ret_from_intr",
        b"start_secondary",
        b"cpu_startup_entry",
        b"x86_64_start_kernel",
        b"el0_svc",
    ];
    STARTS.iter().any(|start| name.starts_with(start)) || NAMES.contains(&name)
}
