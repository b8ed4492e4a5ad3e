//! The first ten lines of pages, which must name the cause.

use super::report;

/// Profiles, and what the first ten lines of their pages must state.
const CAUSES: &[(&str, &[&str])] = &[
    // A callee is named by the first function that says something.
    (
        "python3.11;__libc_start_main;pack (/srv/app.py);compress (gzip.py);[python3.11];deflate;[libz.so.1] 60\n\
         python3.11;__libc_start_main;pack (/srv/app.py) 40\n",
        &[
            "own functions in app.py",
            "100.0%  pack",
            "compress (gzip.py) > deflate 60.0% (compression)",
            "itself 40.0%",
        ],
    ),
    (
        "py;<module> (/srv/a.py);find (/srv/a.py);[python3.11];_PyObject_Vectorcall;[python3.11];list_contains 60\n\
         py;<module> (/srv/a.py) 40\n",
        &["60.0%  find", "list_contains 60.0% (searching)"],
    ),
    (
        "app;_start;main;scan;[app];[libfoo.so.2];memcpy 7\napp;_start;main 3\n",
        &["[libfoo.so.2] > memcpy 70.0% (copying)"],
    ),
    // Modules of Python's library are no own code.
    (
        "python3;<module> (/srv/a.py);day (/srv/a.py);_strptime (_strptime.py);[python3.11] 50\n\
         python3;<module> (/srv/a.py) 50\n",
        &["50.0%  day", "_strptime (_strptime.py) 50.0% (dates and times)"],
    ),
    // Waits are named by their kind.
    (
        "app;clone3;start_thread;poll_jobs;__nanosleep;entry_SYSCALL_64_after_hwframe;do_syscall_64;\
         __x64_sys_clock_nanosleep;schedule;[off-cpu] 50\n\
         app;_start;main;store;fdatasync;entry_SYSCALL_64_after_hwframe;do_syscall_64;do_fsync;[off-cpu] 30\n\
         app;_start;main;next;read;entry_SYSCALL_64_after_hwframe;ksys_read;anon_pipe_read;schedule;[off-cpu] 10\n\
         app;_start;main;serve;epoll_wait;entry_SYSCALL_64_after_hwframe;ep_poll;schedule;[off-cpu] 8\n\
         app;_start;main;[runnable] 2\n",
        &[
            "poll_jobs 50.0% (__nanosleep 100.0% of it)",
            "main 50.0% (store > fdatasync 60.0% of it)",
            "work      sleep 50.0% (poll_jobs), file sync 30.0% (store), pipe read 10.0% (next), …",
            "50.0%  poll_jobs  __nanosleep 50.0% (sleep)",
            "30.0%  store      fdatasync 30.0% (file sync)",
            " 8.0%  serve      idle, epoll_wait 8.0% (events)",
        ],
    ),
    (
        "sh;run;fork;entry_SYSCALL_64_after_hwframe;kernel_clone;dup_mm 40\nsh;run;touch;asm_exc_page_fault;clear_page 60\n",
        &["page faults 60.0% (touch)", "fork 40.0% (run)", "asm_exc_page_fault 60.0% (page faults)"],
    ),
    // The hot path says where it divides.
    (
        "app;main;serve;a 40\napp;main;serve;b 35\napp;main;serve;c 25\n",
        &["hot path  app > main > serve 100.0%", "branches  a 40.0%, b 35.0%, c 25.0%"],
    ),
    // Recursion and callbacks.
    ("app;main;best;best;best;best 90\napp;main 10\n", &["90.0%  best", "calls itself 4 deep"]),
    (
        "php;{main} (/srv/a.php);place (/srv/a.php);usort (php);{closure} (/srv/a.php) 60\n\
         php;{main} (/srv/a.php);place (/srv/a.php);usort (php) 30\nphp;{main} (/srv/a.php) 10\n",
        &["usort (php) 30.0% (sorting, calls back {closure} 60.0%)", "called by place > usort (php) 60.0%"],
    ),
    // Exceptions, allocation and regular expressions.
    (
        "app;main;value;__cxa_throw;_Unwind_RaiseException;[libgcc_s.so.1] 50\napp;main;row;operator new;malloc 30\n\
         app;main;hit;std::regex_search;std::__detail::_Executor::_M_dfs 20\n",
        &["exceptions 50.0% (value), allocation 30.0% (row), regex matching 20.0% (hit)"],
    ),
    // Own code is work, and allocation that counts for other work is named.
    (
        "app;main;index;std::map::clear;_int_free 40\napp;main;index;std::map::find 10\napp;main;score 50\n",
        &["maps and sets 50.0% (index), own code 50.0% (score), allocation in all 40.0% (index)"],
    ),
    // A function of a script is none of a library in C that begins like it.
    (
        "python3;<module> (/srv/a.py);git_version (/srv/a.py);run (subprocess.py) 60\npython3;<module> (/srv/a.py) 40\n",
        &["60.0%  git_version  run (subprocess.py) 60.0%"],
    ),
    // The threads of a pool are one.
    (
        "web-1;clone3;start_thread;serve;parse;memcpy 30\nweb-2;clone3;start_thread;serve;parse;memcpy 30\n\
         main;_start;main;load 40\n",
        &["hot path  web-N ×2 60.0% > serve > parse > memcpy 60.0%"],
    ),
    // Who calls a function that is not on the hot path.
    (
        "app;main;a;b;c 60\napp;main;d;pack;memcpy 21\napp;main;e;pack;memcpy 19\n",
        &["40.0%  pack  memcpy 40.0% (copying), called by d 21.0% and e 19.0%"],
    ),
    // The end of a runtime's start and its threads say less than functions.
    (
        "node;_start;node::Start 30\nnode;_start;node::Start;serve (/srv/a.js);x 25\nnode;_start;node::Start;plan (/srv/a.js) 45\n",
        &["45.0%  plan\n25.0%  serve"],
    ),
    (
        "app;clone3;start_thread;work;pthread_mutex_lock;futex_wait;[off-cpu] 40\napp;_start;main;pthread_join;futex_wait;[off-cpu] 60\n",
        &["40.0%  work  pthread_mutex_lock 40.0% (lock)\n60.0%  main  pthread_join 60.0% (thread join)"],
    ),
];

/// A caller that calls a function back through a library is named once.
#[test]
fn a_caller_is_named_once() {
    let page = report(&[], b"app;main;place;std::sort;by_name 60\napp;main;place;std::sort;by_size 60\n");
    assert!(page.contains("50.0%  by_name  called by place > std::sort 50.0%\n"), "{page}");
}

#[test]
fn the_first_lines_name_the_callee_the_wait_and_the_kind_of_work() {
    for (profile, facts) in CAUSES {
        let page = report(&[], profile.as_bytes());
        let first = page.lines().take(10).collect::<Vec<_>>().join("\n");
        for fact in *facts {
            assert!(first.contains(fact), "{fact}\n{page}");
        }
    }
}

/// A worker waits for a lock that a thread holds while it sleeps.
const HOLDER: &[u8] =
    b"app;clone3;start_thread;worker;charge;pthread_mutex_lock;futex_wait;schedule;--;app_[w];clone3_[w];\
start_thread_[w];keeper_[w];pthread_mutex_unlock_[w];futex_wake_[w];[off-cpu] 60
app;clone3;start_thread;keeper;publish;__nanosleep;hrtimer_nanosleep;schedule;--;[timer]_[w];[off-cpu] 40
";

#[test]
fn what_the_holder_of_a_lock_waits_for_is_named() {
    let page = report(&[], HOLDER);
    let first = page.lines().take(10).collect::<Vec<_>>().join("\n");
    for fact in [
        "60.0%  charge   pthread_mutex_lock 60.0% (lock)",
        "waits for keeper 60.0%",
        "keeper itself waits in publish > __nanosleep 40.0% (sleep)",
    ] {
        assert!(first.contains(fact), "{fact}\n{page}");
    }
}

#[test]
fn runtime_threads_come_after_own_functions() {
    let page = report(
        &[],
        b"C2;clone3;start_thread;thread_native_entry;CompileBroker::loop;futex_wait;[off-cpu] 90\n\
        main;clone3;start_thread;App.run;java.lang.Thread.sleep;[off-cpu] 10\n",
    );
    let position = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}\n{page}"));
    assert!(position("10.0%  App.run") < position("90.0%  C2"), "{page}");
}

#[test]
fn threads_without_own_functions_are_sorted_by_weight() {
    let text: String = (0..60).map(|number| format!("cmd{number};clone3;start_thread;read {}\n", 2 + number)).collect();
    let page = report(
        &["--own=^app_", "--budget=24"],
        (text + "main;app_a 1\nbash;clone3;start_thread;read 3000\n").as_bytes(),
    );
    let rows: Vec<&str> = page.lines().skip_while(|line| !line.contains("own functions, with")).skip(1).collect();
    assert!(rows[0].contains("bash"), "{page}");
    let whole = report(&["--own=^app_", "--json"], b"bash;clone3;start_thread;read 96\nmain;app_a 4\n");
    assert!(whole.find("\"bash\"").unwrap() < whole.find("\"app_a\"").unwrap(), "{whole}");
}
