//! Idle CPUs and threads: they come after work, and are marked.

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

/// Stacks of a pool that waits for work, and of workers and the main thread, which do not.
fn pool_and_workers() -> String {
    let wait = "pthread_cond_wait;do_futex_[k];schedule_[k];[off-cpu]";
    let pool = (0..8).map(|thread| format!("pool-{thread};clone3;start_thread;take_job;{wait} 80\n"));
    let locks = "pthread_mutex_lock;__lll_lock_wait;do_futex_[k];schedule_[k];[off-cpu]";
    let workers = (0..4).map(|thread| format!("worker-{thread};clone3;start_thread;write_journal;{locks} 60\n"));
    pool.chain(workers).chain(["app;_start;main;sum_up 120\n".to_owned()]).collect()
}

#[test]
fn idle_branches_come_last_in_call_trees() {
    let page = report(&[], pool_and_workers().as_bytes());
    let tree = rows(&page, "call tree");
    assert!(tree[0].contains("worker-N ×4") && tree[1].contains("app"), "{page}");
    assert!(tree[2].contains("64.0%") && tree[2].contains("pool-N ×8"), "{page}");
}

#[test]
fn callers_are_grouped_and_ordered_as_in_the_call_tree() {
    let page = report(&["--focus=^schedule"], pool_and_workers().as_bytes());
    let callers = rows(&page, "callers: each line");
    let place = |name: &str| callers.iter().position(|row| row.contains(name)).unwrap_or_else(|| panic!("{page}"));
    assert!(place("worker-N ×4") < place("pool-N ×8"), "{page}");
    assert!(!page.contains("pool-1"), "{page}");
    let exact = report(&["--focus=^schedule", "--json"], pool_and_workers().as_bytes());
    assert!(exact.contains("pool-1") && !exact.contains("pool-N"), "{exact}");
}

#[test]
fn a_row_is_idle_only_by_the_weight_that_is() {
    let page = report(
        &[],
        b"py;main;run_forever (asyncio/base_events.py);loads (json/__init__.py) 30\n\
          tok;main;tokio::runtime::park;mio::poll::Poll::poll;epoll_wait 60\n\
          app;main;serve;memcpy 10\n",
    );
    let own = rows(&page, "own functions, with");
    assert!(own[0].contains("90.0%  main") && own[0].contains("idle 60.0%, "), "{page}");
    assert!(page.contains("(JSON parsing)") && own.last().unwrap().contains("10.0%  serve"), "{page}");
    // It comes after what has more work.
    let page = report(&[], b"a;main;loop;epoll_wait 80\na;main;loop;memcpy 5\na;main;serve;memcpy 15\n");
    let own = rows(&page, "own functions, with");
    assert!(own[0].contains("15.0%  serve") && own[1].contains("85.0%  loop"), "{page}");
    assert!(own[1].contains("idle 80.0%") && own[1].contains("memcpy 5.0%"), "{page}");
}

/// Locks of interpreters and of Rust wait in the same functions as threads that wait for work.
#[test]
fn threads_that_wait_for_a_lock_are_not_idle() {
    let kernel = "entry_SYSCALL_64_after_hwframe;do_syscall_64;do_futex;futex_wait;schedule;[off-cpu]";
    for (lock, idle) in [
        (
            "worker (/srv/a.py);handle (/srv/a.py);lock_PyThread_acquire_lock;PyThread_acquire_lock_timed",
            "serve (/srv/a.py);Queue.get (/usr/lib/python3.11/queue.py);Condition.wait (/usr/lib/python3.11/threading.py);lock_PyThread_acquire_lock;PyThread_acquire_lock_timed",
        ),
        (
            "app::update;std::sync::poison::mutex::Mutex<T>::lock;<std::sys::sync::mutex::futex::Mutex>::lock_contended;std::sys::pal::unix::futex::futex_wait;syscall",
            "app::serve;std::sync::poison::condvar::Condvar::wait;<std::sys::sync::condvar::futex::Condvar>::wait;std::sys::pal::unix::futex::futex_wait;syscall",
        ),
        (
            "rb_vm_exec;handle (/srv/a.rb);rb_mutex_synchronize;rb_mutex_lock;do_mutex_lock;native_sleep;rb_native_cond_wait;pthread_cond_wait",
            "rb_vm_exec;serve (/srv/a.rb);queue_do_pop;queue_sleep;native_sleep;rb_native_cond_wait;pthread_cond_wait",
        ),
    ] {
        let start = "app;clone3;start_thread";
        let page = report(&[], format!("{start};{lock};{kernel} 600\n{start};{idle};{kernel} 900\n").as_bytes());
        assert!(page.contains("work      lock 40.0%") && page.contains("idle 60.0%"), "{page}");
    }
}
