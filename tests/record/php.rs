//! PHP functions, as they run: without options, extensions or a restart.

use std::process::Stdio;
use std::time::Duration;

use crate::support::process::Background;
use crate::support::programs::sources;
use crate::support::recording::{Profile, Stack, can_record, record, record_process, recorder};
use crate::support::script_functions::{Callers, assert_callers, walked_scripts};
use crate::support::{Outcome, command, directory, run_bounded, skip_optional};

/// The functions of `functions.php` that compute.
const CALLERS: Callers<'_> = &[
    ("burn_deep", &["deep", "deep", "deep"]),
    ("burn_odd", &["odd", "even", "odd", "even"]),
    ("burn_generator", &["generator", "delegating", "outermost", "run_generator", "{main}"]),
    ("burn_callback", &["{closure}", "usort", "sort_numbers", "{main}"]),
    ("burn_method", &["method", "method", "{closure}", "array_map", "call", "{main}"]),
    ("burn_included", &["{main}", "include_file", "{main}"]),
    ("burn_handler", &["handler", "{main}"]),
    ("burn_fiber", &["in_fiber"]),
    ("preg_match_all", &["find_words", "{main}"]),
];

/// True if the PHP of this machine is one whose functions are shown. Otherwise reports the test as skipped.
#[track_caller]
pub fn has_php() -> bool {
    let mut check = command("php");
    check.args(["-r", "exit(PHP_VERSION_ID >= 80100 && PHP_VERSION_ID < 80500 && !PHP_ZTS ? 0 : 1);"]);
    let is_known = check.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_known {
        skip_optional("no PHP 8.1 to 8.4");
    }
    is_known
}

#[test]
fn shows_the_functions_of_a_command_and_of_a_process_that_runs_already() {
    if !can_record() || !has_php() {
        return;
    }
    let program = sources().join("functions.php").display().to_string();
    let outcome = record(["-v", "-F", "997", "--", "php", &program, "0.7"]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    assert_callers(&Profile::from_stdout(&outcome), CALLERS, "php");

    let process = Background::start(command("php").args([&program, "100"]));
    process.wait_for_cpu_time(Duration::from_millis(200));
    let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(1)).ok();
    let profile = Profile::from_stdout(&outcome);
    assert_callers(&profile, CALLERS, "php -p");
    // A sample between two functions may lack its script frames, no more.
    let total: u64 = profile.0.iter().map(|stack| stack.weight).sum();
    let scripts = profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.ends_with(".php)")));
    let scripts: u64 = scripts.map(|stack| stack.weight).sum();
    assert!(scripts * 100 >= total * 98, "{scripts} of {total}: {profile:?}");
}

/// Records a program in which so many generators delegate to another one each, which does `innermost`. They are `g_0` to `g_6` by
/// turns, `g_0` is the outermost.
fn record_generators(count: usize, innermost: &str, options: &[&str]) -> Outcome {
    let generators = (0..7).map(|own| {
        let next = (own + 1) % 7;
        format!("function g_{own}($n) {{ if ($n) yield from g_{next}($n - 1); else {innermost} }}\n")
    });
    let folder = directory();
    let program = folder.path().join("generators.php");
    let rest = "function burn($n) { for ($i = $s = 0; $i < $n; $i++) $s = ($s * 31 + $i) & 0xffffff; return $s; }
        function run($count, $end) { foreach (g_0($count) as $_) if (hrtime(true) > $end) break; }
        for ($end = hrtime(true) + 4e8; hrtime(true) < $end;) run";
    std::fs::write(&program, format!("<?php\n{}{rest}({count}, $end);\n", generators.collect::<String>())).unwrap();
    run_bounded(recorder(["-v"]).args(options).args(["--", "php"]).arg(program)).ok()
}

#[test]
fn shows_generators_that_delegate_to_others() {
    if !can_record() || !has_php() {
        return;
    }
    let generators = |count: usize| (0..=count).rev().map(|number| format!("g_{}", number % 7));
    for count in [1, 9, 255] {
        let outcome = record_generators(count, "while (true) yield burn(20000);", &["-F", "997"]);
        if !walked_scripts(&outcome) {
            return;
        }
        let callers: Vec<String> = generators(count).chain(["run".to_owned(), "{main}".to_owned()]).collect();
        let callers: Vec<&str> = callers.iter().map(String::as_str).collect();
        assert_callers(&Profile::from_stdout(&outcome), &[("burn", &callers)], &format!("{count} generators"));
    }
    // More than are read.
    let outcome = record_generators(256, "while (true) yield burn(20000);", &["-F", "997"]);
    let profile = Profile::from_stdout(&outcome);
    assert_callers(&profile, &[("burn", &["g_4"])], "256 generators");
    let in_burn = profile.0.iter().filter(|stack| stack.frames.iter().any(|frame| frame.starts_with("burn (")));
    let cut: u64 =
        in_burn.inspect(|stack| assert!(stack.contains(&["[truncated]"]), "{stack:?}")).map(|stack| stack.weight).sum();
    let details = outcome.stderr.lines().find(|line| line.contains("stacks truncated:")).unwrap();
    let deep = details.rsplit(", ").next().and_then(|deep| deep.strip_suffix(" too deep")?.parse::<u64>().ok());
    assert!(cut > 0 && deep >= Some(cut), "{cut}: {details}");
}

#[test]
fn generators_that_begin_and_end_have_their_callers() {
    if !can_record() || !has_php() {
        return;
    }
    // They are linked while the innermost one runs, and resumed before they have a caller.
    for count in [9, 60, 200] {
        let outcome = record_generators(count, "for ($i = 0; $i < 40; $i++) yield burn(2);", &["-F", "4999"]);
        if !walked_scripts(&outcome) {
            return;
        }
        let mut complete = 0;
        for stack in &Profile::from_stdout(&outcome).0 {
            let names = stack.frames.iter().filter_map(|frame| frame.split(' ').next());
            let scripts: Vec<&str> = names.skip_while(|name| *name != "{main}").collect();
            let is_generator = |frame: &String| frame.starts_with("g_");
            let Some(first) = stack.frames.iter().position(is_generator) else { continue };
            if stack.contains(&["[truncated]"]) || stack.contains(&["[php]"]) {
                continue;
            }
            assert_eq!(scripts.get(1), Some(&"run"), "{count}: {stack:?}");
            assert!(stack.frames[first - 1].starts_with("run ("), "{count}: {stack:?}");
            let generators: Vec<&str> = scripts[2..].iter().copied().filter(|name| name.starts_with("g_")).collect();
            let expected: Vec<String> = (0..generators.len()).map(|depth| format!("g_{}", depth % 7)).collect();
            assert_eq!(generators, expected, "{count}");
            assert!(generators.len() <= count + 1, "{count}: {stack:?}");
            complete += stack.weight;
        }
        assert!(complete > 0, "{count}");
    }
}

/// Options that have functions compiled while they run.
fn jit_options(mode: &str) -> [String; 6] {
    let settings = ["opcache.enable_cli=1", "opcache.jit_buffer_size=32M", &format!("opcache.jit={mode}")];
    let [first, second, third] = settings.map(str::to_owned);
    ["-d".to_owned(), first, "-d".to_owned(), second, "-d".to_owned(), third]
}

/// True if the PHP of this machine compiles functions while they run. Otherwise reports the test as skipped.
#[track_caller]
fn has_jit() -> bool {
    let mut check = command("php");
    let is_on = "$status = @opcache_get_status(); exit($status && $status['jit']['on'] ? 0 : 1);";
    check.args(jit_options("tracing")).args(["-r", is_on]);
    let is_on = check.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_on {
        skip_optional("no opcache with a compiler");
    }
    is_on
}

#[test]
fn shows_functions_that_are_compiled_while_they_run() {
    if !can_record() || !has_php() || !has_jit() {
        return;
    }
    let program = sources().join("functions.php").display().to_string();
    for mode in ["tracing", "function", "1205"] {
        let process = Background::start(command("php").args(jit_options(mode)).args([&program, "100"]));
        process.wait_for_cpu_time(Duration::from_millis(500));
        let outcome = record_process(&process, &["-v", "-F", "997"], Duration::from_secs(1)).ok();
        if !walked_scripts(&outcome) {
            return;
        }
        let profile = Profile::from_stdout(&outcome);
        assert_callers(&profile, CALLERS, mode);
        let has = |stack: &Stack, name: &str| stack.frames.iter().any(|frame| frame.starts_with(name));
        let weigh = |is_counted: &dyn Fn(&&Stack) -> bool| -> u64 {
            profile.0.iter().filter(is_counted).map(|stack| stack.weight).sum()
        };
        // Regular expressions are compiled to code with other frames.
        let cut = weigh(&|stack| has(stack, "[truncated]") && !has(stack, "preg_match_all"));
        assert!(cut * 100 <= profile.total(), "{mode}: {cut} of {}", profile.total());
        let in_expression =
            weigh(&|stack| has(stack, "__libc_start_main") && has(stack, "preg_match_all") && has(stack, "[anon]"));
        assert!(in_expression > 0, "{mode}: no regular expression was met");
    }
}

#[test]
fn says_what_names_functions_where_the_kernel_takes_stacks() {
    if !can_record() || !has_php() {
        return;
    }
    let code = "for ($i = $s = 0; $i < 60000000; $i++) $s = ($s * 31 + $i) & 0xffff;";
    let outcome = record(["--call-graph", "fp", "-F", "997", "--", "php", "-r", code]).ok();
    let hint = "of stacks are of PHP functions without names; use --call-graph dwarf as root";
    assert_eq!(outcome.stderr.matches(hint).count(), 1, "{}", outcome.stderr);
}

#[test]
fn shows_the_line_of_each_call() {
    if !can_record() || !has_php() {
        return;
    }
    let folder = directory();
    let path = folder.path().join("lines.php");
    let source = "<?php
function work(int $n) {
    $sum = 0;
    for ($i = 0; $i < $n; $i++) {
        $sum = ($sum * 31 + $i) & 0xffffff;
    }
    return $sum;
}

function call() {
    $x = 1;
    work(100);
    return work(1000000);
}

for ($i = 0; $i < 40; $i++) {
    call();
}
";
    std::fs::write(&path, source).unwrap();
    let shown = path.display().to_string();
    let outcome = record(["-v", "--lines", "-F", "997", "--", "php", &shown]).ok();
    if !walked_scripts(&outcome) {
        return;
    }
    let profile = Profile::from_stdout(&outcome);
    for stack in &profile.0 {
        let Some(frame) = stack.frames.iter().position(|frame| frame.starts_with("work (")) else { continue };
        let line: u32 = stack.frames[frame].rsplit(':').next().unwrap().trim_end_matches(')').parse().unwrap();
        assert!((2..=8).contains(&line), "{stack:?}");
        // The first call is short, but not too short for a sample.
        let callers = [12, 13].map(|line| format!("call ({shown}:{line})"));
        assert!(callers.contains(&stack.frames[frame - 1]), "{stack:?}");
        assert_eq!(stack.frames[frame - 2], format!("{{main}} ({shown}:17)"), "{stack:?}");
    }
    profile.assert_contains(&[&format!("call ({shown}:13)"), &format!("work ({shown}:5)")]);
}
