//! The first ten lines of pages about two profiles, which must name what grew, by how much and where.

use super::report;
use crate::support::{command, directory, run, run_command, tool};

/// Returns a comparison of many equal functions in which these stacks differ as well, each with its weights before and after.
fn comparison(stacks: &[(&str, u32, u32)]) -> String {
    let equal = (0..40).map(|number| (number, 503 + number % 5));
    let equal = equal.map(|(number, weight)| format!("app;_start;main;serve;step_{number} {weight} {weight}\n"));
    // Weights are numbers of samples.
    let single = ["app;_start;main;once 1 1\n".to_owned()];
    let differing = stacks.iter().map(|(stack, before, after)| format!("{stack} {before} {after}\n"));
    equal.chain(single).chain(differing).collect()
}

fn first_lines(stacks: &[(&str, u32, u32)]) -> String {
    let page = report(&[], comparison(stacks).as_bytes());
    page.lines().take(10).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_path_leads_to_the_function_that_grew() {
    let thread = "C2 CompilerThre;clone3;start_thread;thread_native_entry;CompileBroker::compiler_thread_loop";
    let page = first_lines(&[
        (thread, 300, 1900),
        ("app;_start;main;serve;render;join_lines;java.lang.String.concat", 100, 1200),
        ("app;_start;main;load;parse", 400, 405),
    ]);
    assert!(page.contains("grew at   app > main > serve > render > join_lines"), "{page}");
    // A function that is called from everywhere ends the path, which divides above it.
    let page = first_lines(&[
        ("app;_start;main;serve;a;key_of", 10, 400),
        ("app;_start;main;serve;b;key_of", 10, 400),
        ("app;_start;main;serve;c;key_of", 10, 400),
    ]);
    assert!(page.contains("grew at   app > main > serve +") && page.contains("> … > key_of +"), "{page}");
}

/// Weight that moved between callers is no growth.
#[test]
fn growth_is_net_of_what_moved_from_other_callers() {
    let page = |before: [u32; 2], after: [u32; 2]| {
        first_lines(&[
            ("app;_start;main;work;a;parse", before[0], after[0]),
            ("app;_start;main;work;b;parse", before[1], after[1]),
        ])
    };
    let grown = page([5000, 1000], [500, 10_000]);
    assert!(
        grown.contains(" 6,000 10,500 +17.2%") && grown.contains("grew at   app > main > work > b > parse +17.2%"),
        "{grown}"
    );
    // The same if the growth of the function itself is within noise, or if there is none.
    let within = page([5000, 1000], [500, 6600]);
    assert!(
        within.contains("b with all that it calls") && within.contains("grew at   app > main > work > b > parse +4.2%"),
        "{within}"
    );
    let moved = page([5000, 1000], [500, 5450]);
    assert!(moved.contains("a with all that it calls -") && !moved.contains("grew at"), "{moved}");
}

/// The number of a function is no more than in the call tree.
#[test]
fn growth_is_net_of_what_shrank_below() {
    let page = |beta: u32| {
        let of = |name: &str| format!("app;_start;main;work;{name}");
        let [alpha, gamma, shrunk] = ["alpha", "gamma", "beta"].map(of);
        first_lines(&[(&alpha, 1000, 3500), (&gamma, 1000, 3400), (&shrunk, 8000, beta)])
    };
    let less = page(3300);
    assert!(
        less.contains("2 grew, 1 shrank") && less.contains("grew at   app > main > work +0.7% > … > alpha +8.3%"),
        "{less}"
    );
    let least = page(2900);
    assert!(least.contains("grew at   app > main > work > … > alpha +8.3%"), "{least}");
}

#[test]
fn the_change_of_a_librarys_function_counts_for_the_function_that_has_most_of_it() {
    // By itself, the function is within noise, since it called less of something else.
    let stacks = [
        ("app;_start;main;serve;apply;memcpy", 100, 1500),
        ("app;_start;main;serve;apply;strcmp", 3000, 1700),
        ("app;_start;main;serve;other;strcmp", 500, 1800),
    ];
    let page = first_lines(&stacks);
    assert!(page.contains("callees   memcpy +"), "{page}");
    let row = page.lines().find(|line| line.contains("  apply  ")).unwrap_or_else(|| panic!("{page}"));
    assert!(row.contains("memcpy +") && row.contains("<0.001"), "{page}");
}

#[test]
fn differences_within_noise_are_ordered_by_size_and_fill_the_page() {
    let folder = directory();
    let write = |name: &str, run: u32| {
        let noise = (0..9).map(|number| {
            // Neither side of a function is above the other in both runs.
            let weight = 2000 + (run * 7 + number * 3) % 5 * 100 * (number + 1);
            format!("app;_start;main;noisy_{number} {weight}\n")
        });
        std::fs::write(folder.path().join(name), noise.collect::<String>()).unwrap();
    };
    for (run, name) in (0..).zip(["b1", "b2", "a1", "a2"]) {
        write(name, run);
    }
    let mut command = command(tool("fg-report"));
    command.current_dir(folder.path()).args(["--before", "b1", "b2", "--after", "a1", "a2"]);
    let page = run_command(command, b"").ok().text();
    let rows = page.lines().skip_while(|line| !line.contains("differences within noise")).skip(1);
    let changes = rows.take_while(|line| !line.is_empty()).map(|line| {
        let change = line.split_whitespace().nth(2).and_then(|change| change.trim_end_matches('%').parse::<f64>().ok());
        change.unwrap_or_else(|| panic!("{page}")).abs()
    });
    let changes: Vec<f64> = changes.collect();
    assert!(changes.len() > 3 && changes.is_sorted_by(|a, b| a >= b), "{page}");
}

#[test]
fn weights_of_a_comparison_are_in_the_unit_of_the_totals() {
    let page = first_lines(&[("app;_start;main;serve;grow", 500, 60_000)]);
    assert!(page.contains("before  after  change chance  own functions that grew"), "{page}");
    assert!(page.contains("   500 60,000 +287.4% <0.001  grow"), "{page}");
    let waits = b"app;_start;main;serve;wait;[off-cpu] 500000 2500000\napp;_start;main;run 900000 900000\n";
    let page = report(&[], waits);
    assert!(page.contains("500.0 ms 2.50 s"), "{page}");
}

#[test]
fn the_commands_look_closer_at_what_grew() {
    let page = report(
        &[],
        comparison(&[("app;_start;main;gone", 9000, 100), ("app;_start;main;grown", 100, 5000)]).as_bytes(),
    );
    assert!(page.contains("fg-report --focus '^grown$'"), "{page}");
    let page = report(&[], comparison(&[("app;_start;main;gone", 9000, 100)]).as_bytes());
    assert!(page.contains("fg-report --focus '^gone$'"), "{page}");
}

#[test]
fn functions_with_different_names_are_told_apart() {
    let index = |tag: &str| {
        format!(
            "exchange::storage::detail::ordered_index<exchange::storage::detail::order, exchange::storage::{tag}>::rebuild"
        )
    };
    let stacks = format!("app;main;{} 60\napp;main;{} 40\n", index("by_price"), index("by_symbol"));
    let page = report(&[], stacks.as_bytes());
    assert!(page.contains("ordered_index::rebuild<…by_price…>"), "{page}");
    assert!(page.contains("ordered_index::rebuild<…by_symbol…>"), "{page}");
    // Packages are left out of long names, unless they alone tell functions apart.
    let alone = "org.springframework.web.servlet.DispatcherServlet.doService";
    let others = [
        "com.example.orders.OrderRepository.findAllByCustomer",
        "com.example.billing.OrderRepository.findAllByCustomer",
    ];
    let stacks = format!("java;{alone};{} 6\njava;{alone};{} 4\n", others[0], others[1]);
    let page = report(&[], stacks.as_bytes());
    assert!(page.contains("> DispatcherServlet.doService"), "{page}");
    assert!(page.contains("findAllByCustomer<…orders…>") && page.contains("AllByCustomer<…billing…>"), "{page}");
}

#[test]
fn a_part_of_a_comparison_may_lack_a_side() {
    let new = "app;main;cache;hash 0 4001\napp;main;cache;insert 0 3000\n";
    let page = report(&[], new.as_bytes());
    assert!(page.starts_with("profiles  before: weight 0; after: weight 7,001\n"), "{page}");
    assert!(page.contains("2 appeared") && page.contains("+57.1%"), "{page}");
    assert!(page.contains("change in % of all after"), "{page}");
    let gone = "app;main;cache;hash 4001 0\napp;main;cache;insert 3000 0\n";
    let page = report(&[], gone.as_bytes());
    assert!(page.starts_with("profiles  before: weight 7,001; after: weight 0 (-100.0%)\n"), "{page}");
    assert!(page.contains("2 vanished") && page.contains("-57.1%"), "{page}");
    for options in [&["--json"][..], &["--markdown"], &["--focus=hash"]] {
        for profile in [new, gone] {
            let page = report(options, profile.as_bytes());
            assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        }
    }
}

#[test]
fn growth_is_that_of_the_worker_and_not_of_those_who_wait_for_it() {
    for (waiter, worker, path) in [
        (
            "app;_start;main;run_all;__pthread_clockjoin_ex;__futex_abstimed_wait_common64;do_futex;schedule;[off-cpu]",
            "worker;clone3;start_thread;work;scan;strcmp",
            "worker > work > scan > strcmp",
        ),
        (
            "make;_start;main;run_child;waitpid;entry_SYSCALL_64_after_hwframe;do_wait;schedule;[off-cpu]",
            "cc;_start;main;compile;fold",
            "cc > main > compile > fold",
        ),
        (
            "app;_start;main;Pool::wait_all;std::condition_variable::wait;pthread_cond_wait;do_futex;[off-cpu]",
            "worker;clone3;start_thread;work;scan",
            "worker > work > scan",
        ),
        (
            "app;runtime.main;main.main;sync.(*WaitGroup).Wait;runtime.semacquire;runtime.gopark",
            "app;runtime.goexit;main.worker;main.scan",
            "main.worker > main.scan",
        ),
        (
            "main;start_thread;App.main;java.util.concurrent.CompletableFuture.get;jdk.internal.misc.Unsafe.park;[off-cpu]",
            "pool-1;start_thread;JavaThread::run;App.task;App.sum",
            "App.task > App.sum",
        ),
    ] {
        let page = first_lines(&[(waiter, 2000, 9000), (worker, 1000, 4500)]);
        let grew_at = page.lines().find(|line| line.starts_with("grew at")).unwrap_or_else(|| panic!("{page}"));
        assert!(grew_at.contains(path), "{page}");
        let rows: Vec<&str> = page.lines().skip_while(|line| !line.contains("own functions that grew")).collect();
        assert!(rows[1].contains(worker.rsplit(';').find(|name| *name != "strcmp").unwrap()), "{page}");
    }
}

#[test]
fn growth_of_many_functions_is_that_of_their_caller() {
    let names: Vec<String> =
        (0..30).map(|number| format!("worker;clone3;start_thread;work;render;std::for_each;draw_{number}")).collect();
    let mut stacks: Vec<(&str, u32, u32)> = names.iter().map(|name| (&name[..], 20, 300)).collect();
    stacks.push(("app;_start;main;run_all;pthread_join;do_futex;schedule;[off-cpu]", 2000, 9000));
    let page = first_lines(&stacks);
    assert!(page.contains("grew at   worker > work > render +"), "{page}");
}

#[test]
fn changes_of_a_percent_of_before_are_shown_beside_larger_ones() {
    let page = report(&[], b"main;a 1000 1000\nmain;b;x 500 520\nmain;c;y 300 100000\nmain;d;q 40 90\n");
    let tree: Vec<&str> = page.lines().skip_while(|line| !line.contains("call tree")).collect();
    for row in
        ["   300 100,000 +5418.5%    c > y", "    40      90    +2.7%    d > q", "   500     520    +1.1%    b > x"]
    {
        assert!(tree.iter().any(|line| line.starts_with(row)), "{row}\n{page}");
    }
    assert!(tree.iter().any(|line| line.contains("1,000   1,000     0.0%  … 1 more branch")), "{page}");
}

#[test]
fn branches_without_a_line_are_counted() {
    let text: String = (0..200).map(|number| format!("main;f{number};leaf 10 {}\n", 10 + number % 3)).collect();
    let page = report(&[], text.as_bytes());
    let tree = page.lines().skip_while(|line| !line.contains("call tree")).skip(1).take_while(|line| !line.is_empty());
    let tree: Vec<&str> = tree.collect();
    let shown = tree.iter().filter(|line| line.contains("f") && line.contains("leaf")).count();
    let last = tree.last().unwrap();
    assert!(last.ends_with(&format!("… {} more branches", 200 - shown)), "{page}");
    let plain = report(&[], b"main;a 990\nmain;b 5\nmain;c 5\n");
    assert!(plain.contains("    -      1.0%  … 2 more branches"), "{plain}");
}

#[test]
fn small_changes_have_digits() {
    let page = first_lines(&[("app;_start;main;serve;grow", 100, 106)]);
    let change = page.lines().find(|line| line.contains("profiles")).unwrap();
    assert!(change.contains("(+0.03%)"), "{page}");
    assert!(!page.contains(" 0.0%") && !page.contains("+0.0%"), "{page}");
}

/// Each run numbers its threads, and the pool itself, anew.
#[test]
fn threads_of_a_pool_are_compared_as_one() {
    let side = |id: u64, parse: u64| -> String {
        let stacks = (1..=4).map(|thread| {
            format!("qtp{id}-{thread};run;handle;parse {parse}\nqtp{id}-{thread};run;handle;write 100\n")
        });
        stacks.collect()
    };
    let folder = directory();
    let [before, after] = [("before", side(111_228, 100)), ("after", side(801_197, 150))].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    });
    let page = run("fg-report", ["--before", &before, "--after", &after], b"").ok().text();
    let tree = page.split("call tree").nth(1).unwrap();
    assert!(tree.contains("qtpN-N ×") && tree.contains("400") && tree.contains("600"), "{page}");
    assert!(!tree.contains("-100.0%") && !tree.contains("qtp111228-1"), "{page}");
}

/// A function by itself says little of a larger change that is divided among many small ones.
#[test]
fn a_larger_change_than_that_of_a_function_by_itself_is_in_the_verdict() {
    let rules: Vec<String> = (0..60u8)
        .map(|number| {
            let letters = [number / 10, number % 10].map(|digit| char::from(b'a' + digit));
            format!("app;_start;main;serve;validate;rule_{}{}", letters[0], letters[1])
        })
        .collect();
    let verdict = |factor: u32| {
        let rules = rules.iter().zip(20..).map(|(stack, weight)| (stack.as_str(), weight, weight * factor));
        let stamp = [("app;_start;main;log_line;stamp", 301, 1101)];
        first_lines(&rules.chain(stamp).collect::<Vec<_>>()).replace("\n          ", " ")
    };
    let page = verdict(1);
    assert!(page.contains("of the own functions 1 grew; ") || page.contains("of the own functions 1 grew ("), "{page}");
    let page = verdict(2);
    assert!(page.contains("of the own functions 1 grew, and validate with all that it calls +12.7%"), "{page}");
    // Two that are new have one caller, of which they are a small part.
    let parts = |name: &str| {
        let stack = |(number, part): (usize, &String)| {
            (number % 2 == usize::from(name == "audit"), part.replace("validate", name))
        };
        rules.iter().enumerate().map(stack).filter(|(is_part, _)| *is_part).map(|(_, part)| part).collect::<Vec<_>>()
    };
    let stacks = [parts("audit"), parts("trace")].concat();
    let stacks =
        stacks.iter().map(|stack| (stack.as_str(), 0, 40)).chain([("app;_start;main;log_line;stamp", 301, 1101)]);
    let page = first_lines(&stacks.collect::<Vec<_>>()).replace("\n          ", " ");
    assert!(page.contains("1 grew, and audit with all") || page.contains("1 grew, and trace with all"), "{page}");
}
