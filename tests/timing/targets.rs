//! Shares and totals of samples of threads, processes and the whole system.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fgkit::record::cpus::online_cpus;

use crate::support::process::Background;
use crate::support::programs::{program, workload};
use crate::support::recording::{Profile, can_record, finish, record, recorder};
use crate::support::statistics::{ensure, statistical};
use crate::support::{command, require, skip};

#[test]
fn each_thread_has_its_share() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    statistical(|| {
        let profile = Profile::from_stdout(&record(["--", &workload(), "0.8"]).ok());
        for thread in ["workload", "parser", "sorter"] {
            profile.check_share(&[thread], 0.04)?;
        }
        let profile = Profile::from_stdout(&record(["--", &threads, "names"]).ok());
        for name in ["a:b", "new_line", "two_words", "\u{1b}[31mred", "\u{fffd}\u{fffd}", "lead", "1_2_3"] {
            profile.check_share(&[name, "work", "spin"], 0.05)?;
        }
        profile.check_share(&["[unknown]", "work", "spin"], 0.1)
    });
}

#[test]
fn samples_hundreds_of_short_processes() {
    if !can_record() {
        return;
    }
    statistical(|| {
        // Counters are per thread: at a high frequency, a sample is due before a process exits.
        let script = "n=0; while [ $n -lt 200 ]; do /bin/true; n=$((n + 1)); done; exit 6";
        let outcome = record(["-F", "10000", "--no-inline", "--", "sh", "-c", script]);
        assert_eq!(outcome.code(), 6, "{outcome:?}");
        let profile = Profile::from_stdout(&outcome);
        // On a busy machine the kernel drops some samples and reports them.
        let threads: BTreeSet<&str> = profile.0.iter().map(|stack| stack.thread()).collect();
        assert!(threads.iter().all(|thread| ["sh", "true", "[lost]"].contains(thread)), "{threads:?}");
        profile.check_share(&["true"], 0.1)
    });
}

#[test]
fn samples_hundreds_of_threads() {
    if !(can_record() && require("python3")) {
        return;
    }
    let script = "import threading\n\
        def work():\n    for n in range(20000): pass\n\
        threads = [threading.Thread(target=work) for n in range(300)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]";
    statistical(|| {
        let outcome = record(["-F", "10000", "--no-inline", "--", "python3", "-c", script]).ok();
        ensure!(Profile::from_stdout(&outcome).total() > 50, "{outcome:?}");
        Ok(())
    });
}

#[test]
fn samples_several_processes() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let [one, other] = [(); 2].map(|()| Background::start(command(&busy).arg("0.8")));
        let outcome = record(["-F", "997", "-p", &format!("{},{}", one.pid(), other.pid())]).ok();
        let profile = Profile::from_stdout(&outcome);
        ensure!(profile.total() > 300, "{outcome:?}");
        profile.check_share(&["busy", "main", "spin", "step"], 0.8)
    });
}

#[test]
fn samples_threads_that_come_and_go_once() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    statistical(|| {
        let process = Background::start(command(&threads).arg("churn"));
        let outcome = record(["-F", "997", "-d", "1", "-p", &process.pid()]).ok();
        let profile = Profile::from_stdout(&outcome);
        profile.check_share(&["threads", "main", "spin"], 0.1)?;
        profile.check_share(&["passing", "work", "spin"], 0.1)?;
        // A thread that is counted twice would have more time than there are CPUs.
        let cpus = std::thread::available_parallelism().unwrap().get() as u64;
        ensure!(profile.total() <= 2 * 1100 * cpus.min(2), "{outcome:?}");
        Ok(())
    });
}

#[test]
fn samples_of_a_thread_are_its_own() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    statistical(|| {
        let process = Background::start(command(&threads).arg("churn"));
        let outcome = record(["-F", "997", "-d", "0.8", "-t", &process.pid()]).ok();
        Profile::from_stdout(&outcome).check_share(&["threads", "main", "spin"], 0.8)
    });
}

#[test]
fn samples_the_whole_system_without_idle_cpus() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let process = Background::start(command(&busy).arg("100000"));
        let (started, cpu_time) = (Instant::now(), process.cpu_time());
        // The cheapest way to record: everything that runs on the machine has to be symbolized.
        let outcome = record(["-a", "-F", "499", "-d", "2", "--call-graph", "fp", "--no-inline"]);
        if outcome.stderr.contains("cannot record all CPUs") {
            skip(&outcome.stderr);
            return Ok(());
        }
        let profile = Profile::from_stdout(&outcome.ok());
        // What the process used of all CPUs' time is its share if nobody idles, and less than its share otherwise.
        let capacity = started.elapsed().as_secs_f64() * online_cpus().len() as f64;
        let used = (process.cpu_time() - cpu_time).as_secs_f64() / capacity;
        assert!(used > 0.0);
        assert!(!profile.0.iter().any(|stack| stack.thread().starts_with("swapper")), "{profile:?}");
        profile.check_share(&["busy", "main", "spin"], used / 3.0)
    });
}

#[test]
fn a_duration_ends_the_command() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let started = Instant::now();
        let outcome = record(["-d", "300ms", "--", "sh", "-c", "while :; do :; done"]);
        assert_eq!(outcome.code(), 128 + libc::SIGTERM, "{outcome:?}");
        ensure!(Profile::from_stdout(&outcome).total() > 0, "{outcome:?}");
        ensure!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        Ok(())
    });
}

#[test]
fn two_recorders_do_not_disturb_each_other() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let process = Background::start(command(&busy).arg("100000"));
        let start = || recorder(["-F", "997", "-d", "0.5", "-p", &process.pid()]).spawn().unwrap();
        let recorders = [start(), start()];
        let profiles = recorders.map(|recorder| Profile::from_stdout(&finish(recorder).ok()));
        profiles.iter().try_for_each(|profile| profile.check_share(&["busy", "main", "spin", "step"], 0.8))
    });
}

/// Parses the times of the shell's `times`, such as `0m1.250s`.
fn parse_shell_time(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

#[test]
fn processes_shorter_than_a_period_are_sampled_by_their_cpu_time() {
    if !can_record() {
        return;
    }
    statistical(|| {
        let script = "i=0; while [ $i -lt 600 ]; do /bin/true; i=$((i+1)); done; times";
        let outcome = record(["-v", "-F", "997", "--", "sh", "-c", script]).ok();
        if outcome.stderr.contains("stacks copied") {
            // Counters are per thread then, and processes that use less than a period leave no sample.
            skip("no BPF program takes the stacks");
            return Ok(());
        }
        let used: f64 = outcome.stderr.split_whitespace().filter_map(parse_shell_time).sum();
        let sampled = Profile::from_stdout(&outcome).total() as f64 / 997.0;
        // A millisecond more or less for each standard deviation of a Poisson process.
        let deviation = (sampled / 997.0).sqrt();
        let bounds = used * 0.95 - 3.0 * deviation..=used * 1.05 + 3.0 * deviation;
        ensure!(bounds.contains(&sampled), "{sampled} s sampled of {used} s: {}", outcome.stderr);
        Ok(())
    });
}
