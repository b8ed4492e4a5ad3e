//! Sampling rates, and limits on them.

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, record};
use crate::support::statistics::{ensure, statistical};

#[test]
fn samples_at_the_given_frequency() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let total = Profile::from_stdout(&record(["-F", "199", "--", &busy, "0.3"]).ok()).total();
        ensure!((30..=80).contains(&total), "{total} samples in 0.3 s at 199 Hz");
        Ok(())
    });
}

#[test]
fn most_samples_are_in_the_hot_function() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    for options in [&[][..], &["-e", "task-clock"], &["--call-graph", "fp"], &["-e", "cpu-clock", "--weight", "period"]]
    {
        statistical(|| {
            let mut recorder = crate::support::recording::recorder([]);
            recorder.args(options).args(["--", &busy, "0.3"]);
            let outcome = crate::support::run_bounded(&mut recorder).ok();
            Profile::from_stdout(&outcome).check_share(&["busy", "main", "spin", "step"], 0.8)
        });
    }
}

#[test]
fn most_kernel_samples_of_dd_are_in_system_calls() {
    if !(can_record() && crate::support::require("dd")) {
        return;
    }
    statistical(|| {
        let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=100", "count=400000"];
        let mut recorder = crate::support::recording::recorder(["-e", "cpu-clock:k", "--"]);
        let profile = Profile::from_stdout(&crate::support::run_bounded(recorder.args(dd)).ok());
        ensure!(profile.total() > 20, "{} samples", profile.total());
        profile.check_share(&["do_syscall_64"], 0.5)
    });
}

#[test]
fn max_overhead_lowers_the_rate() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    statistical(|| {
        let outcome = record(["--max-overhead", "0.2", "-F", "9973", "--", &busy, "2"]).ok();
        ensure!(outcome.stderr.contains("samples were taken at a reduced rate, at worst one in "), "{outcome:?}");
        let mut parts = outcome.stderr.split("fg-record: ");
        let (samples, _) = parts.find_map(|line| line.split_once(" samples of")).unwrap();
        ensure!(samples.parse::<u64>().unwrap() < 12_000, "{outcome:?}");
        // Rarer samples weigh more: the profile still has all of the time.
        let total = Profile::from_stdout(&outcome).total();
        ensure!((1_500_000_000..2_500_000_000).contains(&total), "{total} {}", outcome.stderr);
        Ok(())
    });
}

#[test]
fn reports_samples_that_the_kernel_did_not_take() {
    if !can_record() {
        return;
    }
    statistical(|| {
        // The kernel samples its clock every 10 microseconds at most, and reports a period of one for each sample.
        let outcome = record(["--max-overhead", "1", "-c", "1000", "--call-graph", "fp", "--", "true"]).ok();
        ensure!(outcome.stderr.contains(" of CPU time has no samples: "), "{outcome:?}");
        Ok(())
    });
}
