//! What is idle comes after work, and is marked.

use super::report;

/// Stacks of CPUs and threads that are idle.
const IDLE: &[&str] = &[
    "swapper;secondary_startup_64_no_verify_[k];cpu_startup_entry_[k];do_idle_[k];default_idle_[k];pv_native_safe_halt_[k]",
    "swapper;start_secondary;cpu_startup_entry;do_idle;cpuidle_enter_state;intel_idle",
    "swapper;secondary_startup_64;cpu_startup_entry;do_idle;mwait_idle_with_hints",
    "swapper;start_kernel;rest_init;cpu_startup_entry;do_idle;arch_cpu_idle;default_idle;xen_safe_halt;HYPERVISOR_sched_op",
    "swapper;pv_native_safe_halt",
    "pool-1;java.lang.Thread.run;java.util.concurrent.ThreadPoolExecutor.getTask;java.util.concurrent.LinkedBlockingQueue.take;\
jdk.internal.misc.Unsafe.park;Unsafe_Park;Parker::park;pthread_cond_wait",
    "java/lang/Thread.run;com/acme/Pool.work;java/lang/Object.wait;JVM_MonitorWait;ObjectMonitor::wait",
    "app;runtime.mcall;runtime.park_m;runtime.schedule;runtime.findRunnable;runtime.notesleep;runtime.futexsleep",
    "app;runtime.goexit;main.listen;runtime.chanrecv;runtime.gopark",
    "worker;clone3;start_thread;serve_events;epoll_wait;[off-cpu]",
    "worker;clone3;start_thread;pool_main;pthread_cond_wait;do_futex;schedule;[off-cpu]",
    "kworker/0:1;ret_from_fork;kthread;worker_thread;schedule;[off-cpu]",
];

/// Returns the names of the rows of a table, with what is beside them.
fn rows(page: &str, title: &str) -> Vec<String> {
    let rows = page.lines().skip_while(|line| !line.contains(title)).skip(1).take_while(|line| !line.is_empty());
    rows.map(str::to_owned).collect()
}

#[test]
fn what_is_idle_comes_last_in_a_profile() {
    for idle in IDLE {
        let page =
            report(&[], format!("{idle} 9000\napp;main;serve;encode;memmove 700\napp;main;serve 300\n").as_bytes());
        let own = rows(&page, "own functions, with");
        assert!(own[0].contains("7.0%  encode") && own[1].contains("serve"), "{page}");
        assert!(own[2].contains("90.0%") && own[2].contains(" idle"), "{page}");
        let first = page.lines().take(6).collect::<Vec<_>>().join("\n");
        assert!(first.contains("work      copying 7.0% (encode), own code 3.0% (serve), idle 90.0%"), "{page}");
        assert!(first.contains("hot path  app") && first.contains("encode"), "{page}");
        let selfs = rows(&page, "functions by self weight");
        assert!(selfs[0].contains("memmove") && selfs[1].contains("serve"), "{page}");
    }
}

#[test]
fn what_is_idle_comes_last_in_a_comparison() {
    for idle in IDLE {
        let profile = format!("{idle} 9000 16000\napp;main;serve;encode;memmove 700 1401\napp;main;serve 300 300\n");
        let page = report(&["--exact"], profile.as_bytes());
        let grown = rows(&page, "own functions that grew");
        assert!(grown[0].contains("encode"), "{page}");
        assert!(grown[1].contains("70.0%") && grown[1].contains("  idle"), "{page}");
        let grew_at = page.lines().find(|line| line.starts_with("grew at")).unwrap_or_else(|| panic!("{page}"));
        assert!(grew_at.ends_with("> encode > memmove +7.0%"), "{page}");
        assert!(page.contains("of the own functions 1 grew, 1 idle one differs"), "{page}");
    }
}

#[test]
fn waits_for_work_are_told_from_others() {
    for (stack, own) in [
        // Interrupts are work, whatever they interrupt.
        (
            "swapper;start_secondary;cpu_startup_entry;do_idle;default_idle;asm_common_interrupt;net_rx_action",
            "swapper",
        ),
        // Locks, and a channel that nobody reads.
        (
            "main;App.pay;java.util.concurrent.locks.ReentrantLock.lock;jdk.internal.misc.Unsafe.park;[off-cpu]",
            "App.pay",
        ),
        ("app;main.main;main.send;runtime.chansend;runtime.gopark;[off-cpu]", "main.send"),
        // A function that polls all the time works.
        ("app;_start;main;spin;epoll_wait;entry_SYSCALL_64_after_hwframe;do_epoll_wait;ep_poll;__fget_light", "spin"),
        // A query of a database, deep in a program.
        (
            "app;_start;main;serve;find_orders;PQexec;pqWait;poll;entry_SYSCALL_64_after_hwframe;do_sys_poll;schedule;[off-cpu]",
            "find_orders",
        ),
    ] {
        let page = report(&[], format!("{stack} 600\nxapp;xmain;serve;encode 400\n").as_bytes());
        let first = rows(&page, "own functions, with").into_iter().find(|row| row.contains(own));
        assert!(first.as_ref().is_some_and(|row| !row.contains("idle")), "{page}");
    }
}
