//! Tests of the origin of functions.

use super::{Origin, Origins, Place};
use crate::categories::Categories;
use crate::profile::{Frames, Profile, Weight, Weights};

#[test]
fn tells_own_functions_from_libraries() {
    let categories = Categories::load(None).unwrap();
    for (name, expected) in [
        ("main", Origin::Own),
        ("myapp::parse", Origin::Own),
        ("main.handle", Origin::Own),
        ("com.example.Shop::total_[j]", Origin::Own),
        ("process_block", Origin::Own),
        ("strategy", Origin::Own),
        ("memmove", Origin::Library),
        ("__memmove_avx512_unaligned_erms", Origin::Library),
        ("malloc", Origin::Library),
        ("std::vector::push_back", Origin::Library),
        ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", Origin::Library),
        ("regex::regex::string::Regex::new", Origin::Library),
        ("runtime.mallocgc", Origin::Library),
        ("encoding/json.Marshal", Origin::Library),
        ("java.util.HashMap.put", Origin::Library),
        ("void java.util.HashMap.clear", Origin::Library),
        ("java.lang.Object com.example.Shop.find", Origin::Own),
        ("__unguarded_partition<int*>", Origin::Library),
        ("__init__", Origin::Own),
        ("vfs_read_[k]", Origin::Library),
        ("anything_[k]", Origin::Library),
        ("pthread_mutex_lock", Origin::Library),
        ("strlen", Origin::Library),
        ("usleep", Origin::Library),
        ("sleep_until_ready", Origin::Own),
        ("ObjectMonitor::wait", Origin::Library),
        ("[unknown]", Origin::Unknown),
        ("[libfoo.so]", Origin::Unknown),
        ("[off-cpu]", Origin::Marker),
        ("py::load:/home/me/app.py", Origin::Own),
        ("py::loads:/usr/lib/python3.12/json/__init__.py", Origin::Library),
        ("JS:*unique /home/me/app.js:2:16", Origin::Own),
        ("JS:~readFileSync node:fs:390:22", Origin::Library),
        ("entry_SYSCALL_64_after_hwframe", Origin::Library),
        ("v8::internal::Heap::Grow", Origin::Library),
        ("<std::thread::thread::Thread>::park_timeout", Origin::Library),
        ("<&std::os::unix::net::stream::UnixStream as std::io::Read>::read", Origin::Library),
        ("shop::Thread::run", Origin::Own),
    ] {
        let mut frames = Frames::new();
        let frame = frames.intern(name.as_bytes());
        assert_eq!(Origins::new(&frames, &categories, None).origin(frame), expected, "{name}");
    }
}

#[test]
fn packages_are_libraries_unless_they_are_all_that_there_is() {
    let handler = b"get_response (django/core/handlers/base.py)".as_slice();
    let categories = Categories::load(None).unwrap();
    for (other, expected) in [
        (b"page (/srv/shop/views.py)".as_slice(), Origin::Library),
        (b"handle (gunicorn/workers/sync.py)".as_slice(), Origin::Own),
        (b"page (shop/views.py)".as_slice(), Origin::Library),
    ] {
        let mut frames = Frames::new();
        let [frame, _] = [handler, other].map(|name| frames.intern(name));
        assert_eq!(Origins::new(&frames, &categories, None).origin(frame), expected);
    }
}

#[test]
fn tells_own_code_by_its_place_in_a_stack() {
    for (stack, own, kind) in [
        ("main;next_byte;read;entry_SYSCALL_64_after_hwframe;fdget_pos", Some(1), "kernel"),
        ("main;next_byte;asm_exc_page_fault;memset_erms", Some(1), "kernel"),
        ("main;log_line;fprintf;hack_digit", Some(1), "libraries"),
        ("main;make;malloc;my_hook", Some(1), "allocator"),
        ("main;insert;qsort;by_time", Some(3), "own code"),
        ("main;insert;qsort;msort_with_tmp.part.0", Some(1), "libraries"),
        ("main;app::copy;<*const u8>::copy_to_nonoverlapping", Some(1), "libraries"),
        ("start_thread;worker;my_net", Some(2), "own code"),
        ("_PyEval_EvalFrameDefault;py::run:/app.py;list_extend", Some(1), "interpreter"),
        ("python3;run (/srv/app.py);load (/srv/app.py);scan_once_unicode", Some(2), "interpreter"),
        ("python3;run (/srv/app.py);loads (/usr/lib/python3.12/json/__init__.py)", Some(1), "libraries"),
        ("main;Py_RunMain;list_extend", Some(0), "libraries"),
        ("main;run;list_extend", Some(2), "own code"),
        // Threads that are called as a function is.
        ("log;flush_queue;format_record", Some(2), "own code"),
        ("malloc;clone3;start_thread;worker", Some(3), "own code"),
        ("malloc", None, "allocator"),
    ] {
        let mut frames = Frames::new();
        frames.intern(b"py::other:/app.py");
        let stack: Vec<_> = stack.split(';').map(|name| frames.intern(name.as_bytes())).collect();
        let categories = Categories::load(None).unwrap();
        let origins = Origins::new(&frames, &categories, None);
        let place = origins.place(&stack);
        let leaf = stack.len() - 1;
        assert_eq!(place.own, own, "{stack:?}");
        assert_eq!(origins.kind(stack[leaf], &place, place.own == Some(leaf)), kind, "{stack:?}");
    }
}

#[test]
fn the_callee_of_a_script_is_a_function_and_not_its_interpreter() {
    for (below, callee) in [
        ("_PyEval_EvalFrameDefault;method_vectorcall;py::loads:/usr/lib/python3.12/json/__init__.py", Some(2)),
        ("_PyEval_EvalFrameDefault;list_extend;memcpy", Some(1)),
        ("_PyEval_EvalFrameDefault", Some(0)),
        ("start_thread;read", Some(1)),
        ("runtime.goexit.abi0;runtime.bgsweep", Some(1)),
        ("", None),
    ] {
        let mut frames = Frames::new();
        frames.intern(b"py::run:/app.py");
        let below: Vec<_> =
            below.split(';').filter(|name| !name.is_empty()).map(|name| frames.intern(name.as_bytes())).collect();
        let categories = Categories::load(None).unwrap();
        assert_eq!(Origins::new(&frames, &categories, None).callee(&below), callee, "{below:?}");
    }
}

#[test]
fn an_interpreter_without_functions_of_scripts_is_searched_like_a_program() {
    let mut frames = Frames::new();
    let stack = [b"Py_RunMain".as_slice(), b"sre_search"].map(|name| frames.intern(name));
    let categories = Categories::load(None).unwrap();
    let place = Origins::new(&frames, &categories, None).place(&stack);
    assert_eq!((place.own, place.is_without_scripts), (Some(1), true));
}

#[test]
fn names_of_run_times_belong_to_them_only_where_they_run() {
    let categories = Categories::load(None).unwrap();
    for (name, evidence) in [
        ("rb_insert", "rb_vm_exec"),
        ("lua_parse", "luaV_execute"),
        ("zend_of_day", "zend_execute"),
        ("Matcher::match", "JavaThread::run"),
        ("Thread::run", "JavaThread::run"),
        ("Scene::G1", "JavaThread::run"),
        ("node::Tree::walk", "node::SpinEventLoop"),
        ("log.write", "runtime.goexit"),
        ("image.resize", "runtime.main"),
    ] {
        for (other, expected) in [("main", Origin::Own), (evidence, Origin::Library)] {
            let mut frames = Frames::new();
            let [frame, _] = [name, other].map(|name| frames.intern(name.as_bytes()));
            assert_eq!(Origins::new(&frames, &categories, None).origin(frame), expected, "{name} beside {other}");
        }
    }
    for name in
        ["rust_game::run", "json_tool::read", "regex_engine::step", "tokio_app::serve", "event_loop", "json_parse"]
    {
        let mut frames = Frames::new();
        let frame = frames.intern(name.as_bytes());
        assert_eq!(Origins::new(&frames, &categories, None).origin(frame), Origin::Own, "{name}");
    }
}

#[test]
fn names_like_those_of_the_kernel_are_the_programs_own_outside_of_it() {
    let categories = Categories::load(None).unwrap();
    for (stack, kinds) in [
        ("main;lru_lookup", "own code"),
        ("main;ip_lookup;entry_SYSCALL_64_after_hwframe;do_syscall_64", "own code"),
        ("main;read;entry_SYSCALL_64_after_hwframe;do_syscall_64;lru_lookup", "kernel-mm"),
        ("main;wait;futex_wait;[off-cpu]", "kernel-sched"),
        ("main;wait;lru_lookup_[k]", "kernel-mm"),
    ] {
        let mut profile = Profile::new(false);
        let stack: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
        profile.add(&stack, Weights::plain(Weight::ONE)).unwrap();
        let mut origins = Origins::new(&profile.frames, &categories, None);
        origins.find_kernel(&profile);
        let place = origins.place(&stack);
        let named = stack.iter().position(|frame| {
            let name = profile.frames.name(*frame);
            [&b"lru"[..], b"ip_", b"futex_wait"].iter().any(|start| name.starts_with(start))
        });
        let index = named.unwrap();
        assert_eq!(origins.kind(stack[index], &Place { inside: None, ..place }, true), kinds, "{index}");
    }
}

/// Returns the origins of all frames of a profile, one sample a stack.
fn origins_of(stacks: &[&str]) -> Vec<(String, Origin)> {
    let categories = Categories::load(None).unwrap();
    let mut profile = Profile::new(false);
    for stack in stacks {
        let stack: Vec<_> = stack.split(';').map(|name| profile.frames.intern(name.as_bytes())).collect();
        profile.add(&stack, Weights::plain(Weight::ONE)).unwrap();
    }
    let mut origins = Origins::new(&profile.frames, &categories, None);
    origins.find_roots(&profile);
    origins.find_interpreters(&profile);
    let frames = profile.frames.iter();
    frames.map(|(frame, name)| (String::from_utf8_lossy(name).into_owned(), origins.origin(frame))).collect()
}

fn is_own(stacks: &[&str], name: &str) -> bool {
    origins_of(stacks).contains(&(name.to_owned(), Origin::Own))
}

#[test]
fn native_functions_of_an_interpreters_threads_are_not_the_programs_own() {
    for (stacks, function) in [
        (&["python3;[unknown];Py_INCREF", "python3;[unknown];_PyEval_EvalFrameDefault"][..], "Py_INCREF"),
        (&["python3.12-71/72;long_dealloc", "python3.12-71/72;work (/srv/app.py)"], "long_dealloc"),
        (&["node;[unknown];sha256_block_data_order", "node;_start;main;node::Start"], "sha256_block_data_order"),
        (&["php;[unknown];concat_function", "php;[unknown];execute_ex"], "concat_function"),
        (&["ruby;_start;ruby_process_options", "ruby;_start;<main> (app.rb)"], "ruby_process_options"),
        (&["perl;_start;main;perl_parse", "perl;_start;main;perl_run"], "main"),
        (&["gunicorn;initialize", "gunicorn;_start;main;Py_BytesMain"], "initialize"),
        (
            &["pool-1;[unknown];allocate_array", "pool-1;start_thread;thread_native_entry;JavaThread::run"],
            "allocate_array",
        ),
    ] {
        assert!(!is_own(stacks, function), "{stacks:?}");
    }
}

#[test]
fn native_functions_of_programs_that_call_an_interpreter_are_their_own() {
    for (stacks, function) in [
        // Of many programs, only the name is that of an interpreter.
        (&["node;_start;main;walk_tree", "node;_start;main;balance"][..], "balance"),
        (&["python-foo;[unknown];parse", "python-foo;_start;main;parse;_PyEval_EvalFrameDefault"], "parse"),
        (&["game;_start;main;update;luaV_execute", "game;_start;main;draw"], "draw"),
        (&["game;_start;main;luaV_execute", "game;_start;main;draw"], "draw"),
        (&["python3;_start;main;Py_BytesMain;[unknown]", "tool;_start;main;parse", "python3;parse"], "parse"),
        (&["main;Py_BytesMain;work", "main;work"], "work"),
        (&["pool-1;start_thread;JavaThread::run;0x104d08831"], "0x104d08831"),
    ] {
        assert!(is_own(stacks, function), "{stacks:?}");
    }
}
