//! Threads are told apart by the functions with which they certainly begin.

use super::report;

/// Returns the names of the threads on the page, with their shares, and the function of the first command.
fn threads(profile: &str) -> Vec<String> {
    let page: serde_json::Value = serde_json::from_str(&report(&["--json"], profile.as_bytes())).unwrap();
    let items = page["threads"]["items"].as_array().into_iter().flatten();
    items.map(|item| format!("{} {:.0}", item["name"].as_str().unwrap(), item["percent"].as_f64().unwrap())).collect()
}

#[test]
fn functions_without_a_frame_pointer_begin_no_thread() {
    for profile in [
        // The function that calls both has a frame, but theirs is missing.
        "app;start_thread;hash_block 60\napp;start_thread;scan_block 40\n",
        "app;start_thread;hash_block;<u32>::wrapping_mul 60\napp;start_thread;scan_block 40\n",
        // Frame pointers in the C library alone.
        "app;clone3;hash_block 60\napp;clone3;scan_block 40\n",
        // Frame pointers in the standard library of Rust alone.
        "app;clone3;start_thread;app::hash;<u32>::wrapping_mul 60\napp;clone3;start_thread;app::scan 40\n",
        "app;start_thread;sort_loop;sort 20\napp;start_thread;hash_block 60\napp;__vfprintf_internal 20\n",
        // A function of Go that calls none has no frame.
        "app;runtime.goexit.abi0;main.hash 50\napp;runtime.goexit.abi0;main.main.func1;main.sort 50\n",
        // The main thread of Java, with `main` in the interpreter.
        "java;start_thread;ThreadJavaMain;JavaMain;Interpreter;Hot.maps 60\n\
         java;start_thread;ThreadJavaMain;JavaMain;Interpreter;Hot.streams 40\n",
        // The callbacks of an event loop.
        "node;_start;main;node::Start;a (/app.js) 60\nnode;_start;main;node::Start;b (/app.js) 40\n",
    ] {
        assert_eq!(threads(profile), [""; 0], "{profile}");
    }
}

#[test]
fn functions_that_certainly_begin_threads_are_named() {
    for (profile, expected) in [
        (
            "app;clone3;start_thread;hasher;hash 60\napp;clone3;start_thread;sorter;sort 40\n",
            &["app: hasher 60", "app: sorter 40"][..],
        ),
        (
            "app;clone3;start_thread;std::sys::thread_start;app::a;app::f 60\n\
             app;clone3;start_thread;std::sys::thread_start;app::b;app::g 40\n",
            &["app: app::a 60", "app: app::b 40"],
        ),
        // Both call functions in their stacks, and nothing calls them.
        ("app;start_thread;hasher;hash 60\napp;start_thread;sorter;sort 40\n", &["app: hasher 60", "app: sorter 40"]),
        // Threads have numbers.
        ("app-1/7;start_thread;hash 60\napp-1/8;start_thread;sort 40\n", &["app-1/N: hash 60", "app-1/N: sort 40"]),
        (
            "app;runtime.goexit.abi0;main.main.func1;main.f 40\napp;runtime.goexit.abi0;main.main.func2;main.g 40\n\
             app;runtime.goexit.abi0;runtime.gcBgMarkWorker 10\napp;runtime.mcall;runtime.park_m 5\napp;[truncated];runtime.clone 5\n",
            &["app: main.main.func1 40", "app: main.main.func2 40", "app 20"],
        ),
        (
            "python3;clone3;start_thread;pack (/a.py) 40\npython3;clone3;start_thread;send (/a.py) 60\n",
            &["python3: send (/a.py) 60", "python3: pack (/a.py) 40"],
        ),
        // Stacks that do not show which of the threads they are of.
        (
            "app;clone3;start_thread;hasher;hash 45\napp;clone3;start_thread;sorter;sort 40\napp;[truncated];copy 15\n",
            &["app: hasher 45", "app: sorter 40", "app: unknown entry 15"],
        ),
    ] {
        assert_eq!(threads(profile), expected, "{profile}");
    }
}

/// Node's workers run functions of their own, and of the run time alone.
#[test]
fn threads_of_a_run_time_are_those_of_their_scripts() {
    let worker = "node;clone3;start_thread;node::worker::StartThread::_FUN";
    let profile = format!(
        "{worker};work (/app.js) 50\n{worker};node::CreateEnvironment 20\nnode;[truncated];node::worker::StartThread::_FUN;f 10\n\
         node;_start;main;node::Start 15\nnode;clone3;start_thread;node::PlatformWorkerThread;v8::Run 5\n"
    );
    assert_eq!(threads(&profile), ["node: work (/app.js) 80", "node 20"], "{profile}");
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
