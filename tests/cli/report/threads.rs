//! The weight by thread and by entry: names of threads, and the outermost functions of the program.

use super::report;

/// Returns the names in a list of the page, with their shares.
fn list(label: &str, profile: &str) -> Vec<String> {
    let page: serde_json::Value = serde_json::from_str(&report(&["--json"], profile.as_bytes())).unwrap();
    let items = page[label]["items"].as_array().into_iter().flatten();
    items.map(|item| format!("{} {:.0}", item["name"].as_str().unwrap(), item["percent"].as_f64().unwrap())).collect()
}

#[test]
fn entries_are_the_outermost_own_functions() {
    for (profile, expected) in [
        (
            "app;clone3;start_thread;hasher;hash 60\napp;clone3;start_thread;sorter;sort 40\n",
            &["hasher 60", "sorter 40"][..],
        ),
        // Tasks of a pool, one thread or several.
        (
            "python3;clone3;start_thread;pack (/a.py);zip (/a.py) 40\npython3;clone3;start_thread;send (/a.py) 60\n",
            &["send (/a.py) 60", "pack (/a.py) 40"],
        ),
        // The callbacks of an event loop.
        (
            "node;_start;main;node::Start;a (/app.js);f (/app.js) 60\nnode;_start;main;node::Start;b (/app.js) 40\n",
            &["a (/app.js) 60", "b (/app.js) 40"],
        ),
        // Nothing shows where threads begin.
        ("app;on_read;parse 25\napp;on_read;copy 20\napp;on_timer;sweep 55\n", &["on_timer 55", "on_read 45"]),
        // What the C library calls when a thread ends.
        (
            "app;clone3;start_thread;__nptl_deallocate_tsd;free_cache;spin 40\napp;clone3;start_thread;work;spin 60\n",
            &["work 60", "free_cache 40"],
        ),
        // Threads begin with functions that the main thread calls, too.
        ("app;_start;main;pack 30\napp;start_thread;pack 70\n", &["pack 70", "main 30"]),
        // Stacks without functions of the program have none.
        (
            "app;runtime.goexit.abi0;main.main.func1;main.f 40\napp;runtime.goexit.abi0;main.main.func2;main.g 40\n\
             app;runtime.goexit.abi0;runtime.gcBgMarkWorker 20\n",
            &["main.main.func1 40", "main.main.func2 40"],
        ),
        // The table of own functions says the same.
        ("app;start_thread;hash_block 60\napp;start_thread;scan_block 40\n", &[]),
        ("app;_start;main;parse;lex 60\napp;_start;main;print 40\n", &[]),
        ("game;render 73\ngame;[unknown];simulate 27\n", &[]),
        ("app;start_thread;hash 60\napp;start_thread;scan 39.5\napp;start_thread;tiny;helper 0.5\n", &[]),
        // Callers are missing.
        ("app;hasher;hash 50\napp;compare 20\napp;msort_with_tmp.part.0 30\n", &[]),
        // Stacks begin with functions.
        ("net/http.(*conn).serve;main.search;f 60\nmain.compact;sort.Ints 40\n", &[]),
    ] {
        assert_eq!(list("entries", profile), expected, "{profile}");
        assert_eq!(list("threads", profile), [""; 0], "{profile}");
    }
}

#[test]
fn threads_are_told_apart_by_their_names() {
    let profile = "reader;clone3;start_thread;work;read_all 30\nwriter-1;clone3;start_thread;work;write_all 40\n\
                   writer-2;clone3;start_thread;work;write_all 30\n";
    assert_eq!(list("threads", profile), ["writer-N ×2 70", "reader 30"]);
    assert_eq!(list("entries", profile), [""; 0]);
}

/// A number belongs to the name of a thread that has no other like it.
#[test]
fn a_thread_alone_has_its_own_name() {
    let profile =
        "reader;clone3;start_thread;work;read_all 60\npool-1-thread-1;clone3;start_thread;work;write_all 40\n";
    assert_eq!(list("threads", profile), ["reader 60", "pool-1-thread-1 40"]);
}

#[test]
fn waits_of_a_virtual_machine_are_none_of_the_programs() {
    let page = report(
        &[],
        b"Finalizer;start_thread;JVM_MonitorWait;ObjectMonitor::wait;PlatformEvent::park;pthread_cond_wait;[off-cpu] 60\n\
          main;start_thread;JavaMain;App.main;App.price 40\n",
    );
    assert!(!page.contains("%  PlatformEvent::park"), "{page}");
}

/// Functions of an extension are the program's own in a thread that the extension started.
#[test]
fn threads_of_an_extension_are_not_those_of_the_interpreter() {
    let page = report(
        &[],
        b"python3;clone3;start_thread;tiler;encode_tile 60\n\
          python3;_start;Py_BytesMain;<module> (/a.py);helper 30\npython3;_start;Py_BytesMain;<module> (/a.py) 10\n",
    );
    assert!(page.contains("60.0%  encode_tile ") && page.contains("40.0%  <module>"), "{page}");
    // Those of a run time's own threads are not.
    let page = report(
        &[],
        b"node;clone3;start_thread;worker;node::ThreadPoolWork::Run;sha512_block 60\n\
          node;_start;node::Start;serve (/a.js) 40\n",
    );
    assert!(!page.contains("\n60.0%  sha512_block") && page.contains("40.0%  serve"), "{page}");
}

#[test]
fn a_closer_look_is_at_the_largest_function_outside_of_the_kernel() {
    for (profile, expected) in [
        // An interpreter in a program of its name.
        (
            "node;_start;main;render_frame;fill 70\nnode;_start;main;Py_RunMain;<module> (/a.py);on_tick (/a.py) 30\n",
            "fill",
        ),
        ("wc;[wc];asm_sysvec_reschedule_ipi;schedule 60\nwc;[wc] 35\nwc;main;get_fcts 5\n", "wc"),
        ("app;[app] 60\napp;[app];asm_exc_page_fault;exc_page_fault 40\n", "app"),
        ("app;_start;main;copy;memcpy 60\napp;_start;main;parse 40\n", "copy"),
    ] {
        let page = report(&[], profile.as_bytes());
        let command = page.lines().find_map(|line| line.trim().strip_prefix("fg-report --focus '^"));
        let function = command.and_then(|rest| rest.split_once("$'")).map(|(function, _)| function);
        assert_eq!(function, Some(expected), "{page}");
    }
}

#[test]
fn a_closer_look_at_a_comparison_is_at_a_function_not_at_a_process() {
    let page = report(
        &[],
        b"python3;_start;Py_BytesMain;[libx.so];encode_tile 1000 5000\npython3;_start;Py_BytesMain;run (/a.py) 900 900\n",
    );
    assert!(page.contains("fg-report --focus '^encode_tile$'"), "{page}");
}
