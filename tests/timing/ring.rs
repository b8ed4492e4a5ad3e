//! The flight recorder: planted stalls in what it writes.

use crate::support::directory;
use crate::support::programs::program;
use crate::support::recording::{Profile, can_record_switches, record};
use crate::support::statistics::{ensure, statistical};

#[test]
fn each_stall_is_in_one_of_the_files() {
    let (true, Some(stalls)) = (can_record_switches(&[]), program("stalls")) else { return };
    statistical(|| {
        let folder = directory();
        let pattern = folder.path().join("%t.folded");
        let pattern = pattern.to_str().unwrap();
        let ring = ["--off-cpu", "--ring", "2s", "--when", "block > 40ms", "-o", pattern, "--", &stalls, "20", "350"];
        let outcome = record(ring).ok();
        let measured: u64 = outcome.stderr.lines().filter_map(|line| line.parse::<u64>().ok()).sum();
        let files = std::fs::read_dir(&folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
        let profiles: Vec<Profile> = files.map(|file| Profile::parse(&file)).collect();
        ensure!(profiles.len() >= 3, "{} files: {outcome:?}", profiles.len());
        let weight = |name: &str| profiles.iter().map(|profile| profile.weight(&[name])).sum::<u64>();
        let found = weight("stall") + weight("first_stall");
        // A block begins a little after the program reads the clock, and ends before. Each file but the first may begin with
        // a slice of the one before, of at most a sixteenth of its length.
        let bound = measured / 16 * profiles.len() as u64;
        ensure!(found * 100 > measured * 97 && found < measured + bound, "{found} of {measured}: {outcome:?}");
        Ok(())
    });
}
