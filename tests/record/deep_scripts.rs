//! Deep stacks of script functions: each frame has the name of its own function, in whichever page of memory it is.

use crate::support::recording::{Profile, can_record, recorder};
use crate::support::script_functions::walked_scripts;
use crate::support::{directory, nodes, pythons, run_bounded};

/// The depth of the calls, and the number of functions that call each other in turns.
const DEPTH: usize = 900;
const FUNCTIONS: usize = 37;

/// Records a program whose functions `f_0` to `f_36` call each other, the last one the first one. `f_0` is the outermost, and the
/// innermost one calls `burn`. Asserts that each stack of `burn` has all of them.
#[track_caller]
fn assert_all_functions(extension: &str, source: &str, command: &[&str]) {
    let folder = directory();
    let program = folder.path().join(format!("Deep.{extension}"));
    std::fs::write(&program, source).unwrap();
    let outcome = run_bounded(recorder(["-v", "-F", "997", "--"]).args(command).arg(program)).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let expected: Vec<String> = (0..=DEPTH).map(|depth| format!("f_{}", depth % FUNCTIONS)).collect();
    let (mut complete, mut unknown) = (0, 0);
    for stack in &Profile::from_stdout(&outcome).0 {
        let names: Vec<&str> = stack.frames.iter().map(|frame| frame.strip_prefix("Deep.").unwrap_or(frame)).collect();
        let find = |name: &str| names.iter().position(|frame| frame.split(' ').next() == Some(name));
        let (Some(first), Some(burn)) = (find("f_0"), find("burn")) else { continue };
        let called = &names[first..burn];
        // The frame of the runtime in place of what a compiler may have inlined, or a stack that is cut at such code.
        if called.iter().any(|frame| frame.starts_with('[')) || names[..first].contains(&"[truncated]") {
            unknown += stack.weight;
            continue;
        }
        let functions = called.iter().filter(|frame| frame.starts_with("f_"));
        let functions: Vec<&str> = functions.filter_map(|frame| frame.split(' ').next()).collect();
        assert_eq!(functions, expected, "{command:?}: {:?}", &names[..first]);
        complete += stack.weight;
    }
    // Code may be compiled or thrown away before it is read, on a busy machine.
    assert!(complete > 0, "{command:?}: {unknown} with functions that are not known");
}

/// Returns the functions of a program: `function` makes one of its number and that of the function that it calls.
fn functions(function: impl Fn(usize, usize) -> String) -> String {
    (0..FUNCTIONS).map(|number| function(number, (number + 1) % FUNCTIONS)).collect()
}

#[test]
fn functions_of_every_python() {
    if !can_record() {
        return;
    }
    let functions = functions(|own, next| {
        format!("def f_{own}(d):\n    x = {own}\n    return f_{next}(d - 1) + x if d else burn(3000000)\n")
    });
    let burn = "def burn(n):\n    s = 0\n    for i in range(n):\n        s = (s * 31 + i) & 0xffffff\n    return s\n";
    let source = format!("import sys\nsys.setrecursionlimit(5000)\n{burn}{functions}f_0({DEPTH})\n");
    for python in pythons::supported() {
        assert_all_functions("py", &source, &[&python.display().to_string()]);
    }
}

#[test]
fn functions_of_ruby() {
    if can_record() && crate::ruby::has_ruby() {
        let functions = functions(|own, next| {
            format!("def f_{own}(d)\n  x = {own}\n  d == 0 ? burn(9_000_000) : f_{next}(d - 1) + x\nend\n")
        });
        let burn = "def burn(n)\n  i = 0\n  i += 1 while i < n\n  i\nend\n";
        assert_all_functions("rb", &format!("{burn}{functions}f_0({DEPTH})\n"), &["ruby"]);
    }
}

#[test]
fn functions_of_php() {
    if can_record() && crate::php::has_php() {
        let functions = functions(|own, next| {
            format!("function f_{own}($d) {{ $x = {own}; return $d ? f_{next}($d - 1) + $x : burn(30000000); }}\n")
        });
        let burn =
            "function burn($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s * 31 + $i) & 0xffffff; return $s; }\n";
        assert_all_functions("php", &format!("<?php\n{burn}{functions}f_0({DEPTH});\n"), &["php"]);
    }
}

#[test]
fn functions_of_node() {
    if can_record() {
        let functions = functions(|own, next| {
            format!("function f_{own}(d) {{ const x = {own}; return d ? f_{next}(d - 1) + x : burn(3e7); }}\n")
        });
        let burn =
            "function burn(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) & 0xffffff; return s; }\n";
        let source = format!("{burn}{functions}for (let i = 0; i < 10; i++) f_0({DEPTH});\n");
        for node in nodes::supported() {
            let node = node.display().to_string();
            assert_all_functions("js", &source, &[&node, "--no-opt"]);
            assert_all_functions("js", &source, &[&node, "--no-opt", "--no-sparkplug"]);
        }
    }
}

#[test]
fn functions_of_java() {
    if can_record() && crate::java::has_java() {
        let functions = functions(|own, next| {
            format!("static int f_{own}(int d) {{ int x = {own}; return d == 0 ? burn(n) : f_{next}(d - 1) + x; }}\n")
        });
        let burn = "static int burn(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + i; return s; }\n";
        for (n, options) in [(20_000_000, &["java"][..]), (500_000, &["java", "-Xint", "-Xss4m"])] {
            let calls = format!("for (int i = 0; i < 40; i++) n = {n} + f_0({DEPTH}) % 2;");
            let main = format!("public static void main(String[] a) {{ {calls} }}\n");
            let source = format!("class Deep {{\nstatic int n;\n{burn}{functions}{main}}}\n");
            assert_all_functions("java", &source, options);
        }
    }
}
