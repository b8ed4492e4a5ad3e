//! Which functions are the program's own, and their order.

use super::report;

/// Returns the rows of the table of own functions: share and name.
fn own_rows(options: &[&str], profile: &str) -> Vec<(String, String)> {
    let page: serde_json::Value =
        serde_json::from_str(&report(&[&["--json"], options].concat(), profile.as_bytes())).unwrap();
    let rows = page["own"].as_array().unwrap_or_else(|| panic!("{page}")).iter();
    rows.map(|row| (format!("{:.1}", row["share_pct"].as_f64().unwrap()), row["names"][0].as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn a_root_that_is_a_function_has_the_place_of_its_weight() {
    for (profile, first) in [
        ("main 700\nmain;parse 200\nmain;read_all 100\n", "main"),
        ("main;memcpy 700\nmain;parse 300\n", "main"),
        ("run 700\nrun;parse 200\nrun;read_all 100\n", "run"),
        ("<module> (a.py);list_extend 700\n<module> (a.py);parse (a.py) 300\n", "<module> (a.py)"),
        // The root may be the name of a thread here: then its weight is that of no function.
        ("worker;memcpy 700\nworker;parse 300\n", "parse"),
        ("worker;_start;memcpy 700\nworker;_start;parse 300\n", "parse"),
    ] {
        let rows = own_rows(&[], profile);
        assert_eq!(rows[0].1, first, "{profile}{rows:?}");
    }
}

#[test]
fn a_java_method_with_its_types_belongs_to_its_class() {
    let map = "java.lang.Object java.util.HashMap.merge(java.lang.Object, java.util.function.BiFunction)";
    let profile = format!("java;JavaMain;java.lang.Object shop.Basket.total(java.util.List, int);{map} 100\n");
    let rows = own_rows(&[], &profile);
    assert_eq!(rows, [("100.0".to_owned(), "java.lang.Object shop.Basket.total(java.util.List, int)".to_owned())]);
}

#[test]
fn a_function_of_cpp_is_known_by_its_name_not_by_its_return_type() {
    for (function, is_own) in [
        ("std::vector<int, std::allocator<int> > shop::load<Order>(int)", true),
        ("std::unique_ptr<shop::A> shop::make<shop::A>(int&&)", true),
        ("void std::__introsort_loop<shop::It>(shop::It, shop::It)", false),
        ("shop::It std::find_if<shop::It>(shop::It)", false),
    ] {
        let rows = own_rows(&[], &format!("app;main;shop::rank(int);{function} 100\n"));
        assert_eq!(rows[0].1, if is_own { function } else { "shop::rank(int)" });
    }
}

#[test]
fn a_method_of_a_trait_is_the_programs_own_unless_type_and_trait_are_of_libraries() {
    for (function, is_own) in [
        ("<shop::Lines as core::iter::traits::iterator::Iterator>::next", true),
        ("<alloc::vec::Vec<T> as shop::Encode>::encode", true),
        ("<T as shop::Encode>::encode", true),
        ("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", false),
        ("<T as core::convert::Into<U>>::into", false),
        ("<[T] as core::slice::Concat>::concat", false),
        ("<&str as core::str::pattern::Pattern>::is_prefix_of", false),
    ] {
        let rows = own_rows(&[], &format!("app;shop::main;shop::run;{function} 100\n"));
        assert_eq!(rows[0].1, if is_own { function } else { "shop::run" });
    }
}

#[test]
fn methods_of_java_are_known_by_names_in_all_spellings() {
    for method in [
        "com/acme/shop/Cart.price_[j]",
        "Lcom/acme/shop/Cart:::price",
        "com.acme.shop.Cart.<init>",
        "void com.acme.shop.Cart.<init>(int)",
        "com.acme.shop.Cart$$Lambda$14/0x0000000800c03000.run",
        "com.acme.shop.Cart$$Lambda+0x0000000100001228.run",
    ] {
        let rows = own_rows(&[], &format!("java;start_thread;JavaThread::run;Main.main_[j];{method} 100\n"));
        assert_eq!(rows, [("100.0".to_owned(), method.to_owned())]);
        let page = report(&[], format!("java;start_thread;JavaThread::run;{method} 100\n").as_bytes());
        assert!(page.contains("quality   nothing lost"), "{page}");
    }
}

#[test]
fn the_first_line_of_growth_leads_to_a_root_that_is_a_function() {
    let page = report(&[], b"main 1000 9000\nmain;parse 900 3800\nmain;read_all 800 800\n");
    let path = page.lines().find(|line| line.starts_with("grew at")).unwrap_or_else(|| panic!("{page}"));
    assert!(path.contains("main"), "{page}");
    assert!(page.contains("fg-report --focus '^main$'"), "{page}");
}

#[test]
fn own_functions_are_those_that_the_user_names() {
    let profile =
        "main;parse;malloc;_int_malloc 40\nmain;parse;memcpy 30\nmain;parse;vfs_read_[k];copy_user_[k] 20\nmain 10\n";
    for (own, expected) in [
        ("^malloc$", &[("40.0", "malloc"), ("60.0", "main")][..]),
        ("^(memcpy|parse)$", &[("60.0", "parse"), ("30.0", "memcpy"), ("10.0", "main")]),
        ("^vfs_read", &[("80.0", "main"), ("20.0", "vfs_read_[k]")]),
    ] {
        let mut rows = own_rows(&["--own", own], profile);
        let mut expected: Vec<(String, String)> =
            expected.iter().map(|(share, name)| ((*share).to_owned(), (*name).to_owned())).collect();
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{own}");
    }
}

#[test]
fn code_of_the_command_line_is_the_programs_own() {
    for (source, entry) in [
        ("[eval]", "node::Start;Builtins_JSEntry"),
        ("-e", "ruby_run_node;rb_vm_exec"),
        ("Command line code", "php_cli.c;zend_execute"),
        ("<string>", "Py_BytesMain;_PyEval_EvalFrameDefault"),
    ] {
        let profile = format!(
            "app;_start;{entry};work ({source});is_numeric_string 70\napp;_start;{entry};other ({source}) 30\n"
        );
        let rows = own_rows(&[], &profile);
        let names: Vec<&str> = rows.iter().map(|(_, name)| &name[..]).collect();
        assert_eq!(names, [format!("work ({source})"), format!("other ({source})")], "{profile}");
        assert!(!report(&[], profile.as_bytes()).contains("without the functions that it runs"), "{profile}");
    }
}

/// macOS's sample, DTrace, VTune and WPA write `module`function`.
#[test]
fn functions_with_modules_are_known_by_the_module_and_the_function() {
    let page = report(
        &[],
        b"Thread_1;libdyld`start;rg`main;rg`std::thread::JoinHandle::join;libsystem_pthread`_pthread_join;libsystem_kernel`__ulock_wait 90\n\
          Thread_2;libsystem_pthread`thread_start;rg`search;libsystem_kernel`__open 60\n\
          Thread_3;libsystem_pthread`thread_start;rg`wait_for_work;libsystem_kernel`__psynch_cvwait 50\n",
    );
    assert!(page.contains("work      file open 30.0% (rg`search), thread join 45.0% (rg`main), idle 25.0%"), "{page}");
    let own: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("share  own")).skip(1).take(3).collect();
    assert!(own[0].contains("rg`search") && own[1].contains("rg`main"), "{page}");
    assert!(own[2].contains("rg`wait_for_work") && own[2].contains(" idle,"), "{page}");

    let kernel = report(&[], b"unix`sys_syscall;genunix`open;lofs`lo_lookup;unix`mutex_enter 9\n");
    assert!(kernel.contains("code      kernel") && !kernel.contains("own code"), "{kernel}");
}

#[test]
fn a_thread_is_no_call_of_the_function_of_its_name() {
    for (root, calls_itself) in [("ticker;_start;main;ticker", false), ("app;_start;main;ticker;ticker", true)] {
        let page = report(&[], format!("{root} 50\n{root};usleep 50\n").as_bytes());
        assert_eq!(page.contains("calls itself 2 deep"), calls_itself, "{page}");
    }
}

#[test]
fn functions_with_names_like_those_of_the_kernel_and_of_run_times_are_the_programs_own() {
    let stacks = "app;_start;main;serve;rb_insert 30\napp;_start;main;serve;lru_lookup 25\napp;_start;main;serve;Scene::G1 20\n\
        app;_start;main;serve;read;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;folio_add_lru 25\n";
    let page = report(&[], stacks.as_bytes());
    let own = page.lines().skip_while(|line| !line.contains("own functions")).skip(1);
    let own: Vec<&str> = own.take_while(|line| !line.is_empty()).collect();
    for row in ["30.0%  rb_insert", "25.0%  lru_lookup", "20.0%  Scene::G1", "25.0%  serve"] {
        assert!(own.iter().any(|line| line.starts_with(row)), "{row}: {page}");
    }
}
