//! fg-collapse on perf.data: recordings that perf makes here, and handmade files, valid and invalid. The target
//! `timing` compares with perf's own reading.

mod elsewhere;
mod handmade;
mod jit;
mod sched;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::handmade::{Handmade, comm, exit, lost, mmap, sample};
use crate::support::{self, Outcome, command, directory, require, run, run_command};

fn collapse(file: &Path, options: &[&str]) -> Outcome {
    run("fg-collapse", options.iter().map(AsRef::as_ref).chain([file.as_os_str()]), b"")
}

/// Records a program with perf. Returns `None` and reports the test as skipped if perf cannot record here.
fn record(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    if !require("perf") {
        return None;
    }
    let file = folder.join("perf.data");
    let mut perf = command("perf");
    perf.args(["record", "-q", "-F", "997"]).args(options).arg("-o").arg(&file).arg("--");
    perf.args(["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    if run_command(perf, b"").status.success() && file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Some(file);
    }
    support::skip("perf cannot record here");
    None
}

/// Removes symbol versions, which perf prints if a symbol table has them, and `[truncated]`.
fn plain(stack: &str) -> String {
    let names = stack.split(';').filter(|name| *name != "[truncated]");
    names
        .map(|name| name.split("@@").next().unwrap().replace("cfree@GLIBC_2.2.5", "free"))
        .collect::<Vec<_>>()
        .join(";")
}

fn weights(folded: &str) -> BTreeMap<String, u64> {
    let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
    let mut weights = BTreeMap::new();
    for (stack, weight) in lines {
        *weights.entry(plain(stack)).or_default() += weight.parse::<u64>().unwrap();
    }
    weights
}

#[test]
fn reads_a_file_by_name_from_stdin_and_through_a_pipe() {
    let folder = directory();
    let Some(file) = record(folder.path(), &["-g"]) else { return };
    let named = collapse(&file, &[]).ok().stdout;
    assert!(!named.is_empty());
    let mut from_stdin = command("sh");
    from_stdin.args(["-c", "\"$0\" < \"$1\""]).arg(support::tool("fg-collapse")).arg(&file);
    assert!(run_command(from_stdin, b"").ok().stdout == named);
    let bytes = std::fs::read(&file).unwrap();
    assert!(run("fg-collapse", ["-"], &bytes).ok().stdout == named);
    let packed = folder.path().join("perf.data.zst");
    std::fs::write(&packed, ruzstd_frame(&bytes)).unwrap();
    assert!(collapse(&packed, &[]).ok().stdout == named);
}

fn ruzstd_frame(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn reads_a_recording_from_a_pipe() {
    if !require("perf") {
        return;
    }
    let mut perf = command("sh");
    perf.args(["-c", "perf record -q -F 997 -g -o - -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'"]);
    let recorded = run_command(perf, b"");
    if !recorded.status.success() {
        return support::skip("perf cannot record here");
    }
    let folded = run("fg-collapse", ["--weight", "samples"], &recorded.stdout).ok();
    let text = folded.text();
    assert!(text.lines().any(|line| line.starts_with("sh;")), "{text}\n{}", folded.stderr);
}

/// `work.c`, compiled with `gcc -O1 -g -fno-omit-frame-pointer` and recorded with `perf record -e cpu-clock -F 199 -g`
/// for 60 ms of CPU time: to a file, with `-z`, and with `-z -o -`.
#[test]
fn reads_plain_compressed_and_piped_recordings() {
    let no_files = directory();
    for name in ["plain.data", "compressed.data", "compressed.pipe.data"] {
        let file = support::data("perf-data").join(name);
        let outcome = collapse(&file, &["--weight", "samples", "--symfs", no_files.path().to_str().unwrap()]).ok();
        assert_eq!(outcome.text(), "work;[libc.so.6];[work];[work] 11\n", "{name}: {outcome:?}");
    }
}

#[test]
fn reads_all_samples_of_the_corpus() {
    for (name, samples) in [("sleep.data", 7), ("sleep.compressed.data", 8), ("sleep.compressed.pipe.data", 8)] {
        let Some(file) = support::corpus(&format!("perf-data/{name}")) else { return };
        let counted = weights(&collapse(&file, &["--weight", "samples"]).ok().text());
        assert_eq!(counted.values().sum::<u64>(), samples, "{name}");
    }
}

#[test]
fn converts_times_to_those_of_traces() {
    let folder = directory();
    let mut file = Handmade::default();
    file.push(&sample(7, 7, 10, 0, 100));
    file.push(&sample(7, 7, 30, 0, 100));
    file.finish_round();
    let spans = folder.path().join("spans").to_str().unwrap().to_owned();
    let span = r#"{"name":"work","startTimeUnixNano":"1700000000000000025","endTimeUnixNano":"1700000000000000035","attributes":[{"key":"thread.id","value":{"intValue":"7"}}]}"#;
    std::fs::write(&spans, format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{span}]}}]}}]}}")).unwrap();
    let refused = collapse(&file.write(folder.path()), &["--span", &spans]);
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("give the perf.data file of perf record -k CLOCK_MONOTONIC"), "{refused:?}");
    // The feature with two times of one moment: since 1970, and of the monotonic clock.
    let clocks = [29, 1 | 1 << 32, 1_700_000_000_000_000_005u64, 5];
    file.push(&handmade::record(80, 0, &clocks.map(u64::to_le_bytes).concat()));
    let outcome = collapse(&file.write(folder.path()), &["--span", &spans]).ok();
    assert_eq!(outcome.text(), "[no span];:7;[unknown] 100\nwork;:7;[unknown] 100\n");
}

#[test]
fn sorts_records_by_time() {
    let folder = directory();
    let mut file = Handmade::default();
    // Records of two CPUs, one after the other: the name comes after its sample.
    file.push(&sample(7, 7, 30, 0, 100));
    file.push(&sample(7, 7, 10, 0, 100));
    file.push(&comm(7, 7, 5, "early"));
    file.push(&comm(7, 7, 20, "late"));
    file.finish_round();
    file.push(&exit(7, 7, 40));
    file.finish_round();
    let path = file.write(folder.path());
    let folded = collapse(&path, &[]).ok();
    assert_eq!(folded.text(), "early;[unknown] 100\nlate;[unknown] 100\n");
    assert_eq!(collapse(&path, &["--in-order"]).ok().text(), "early;[unknown] 100\nlate;[unknown] 100\n");
    let spans = folder.path().join("spans").to_str().unwrap().to_owned();
    std::fs::write(&spans, "{\"name\":\"work\",\"tid\":7,\"start\":11,\"end\":31}\n").unwrap();
    let map = run("fg-heatmap", ["--weight", "period", path.to_str().unwrap()], b"").ok().text();
    assert!(map.contains("<title>early (100 cycles, 50.00%)</title>"), "the heatmap has its times");
    for (options, expected) in [
        (&["--weight", "samples", "--comm", "late"][..], "late;[unknown] 1\n"),
        (&["--time", "+0,+0.00000001", "--tid"], "early-7/7;[unknown] 100\n"),
        (&["--cpu", "1"], ""),
        (&["--offset", "0.00000001,0.00000003"], "early;[unknown] 100\n"),
        (&["--time", ",0.00000003", "-p", "7", "-t", "7", "--no-idle"], "early;[unknown] 100\n"),
        (&["-t", "8"], ""),
        (&["--span", &spans], "[no span];early;[unknown] 100\nwork;late;[unknown] 100\n"),
        (&["--pid", "--comm", "late"], "late-7;[unknown] 100\n"),
        (&["--addrs", "--comm", "late"], "late;[unknown <4000>] 100\n"),
    ] {
        assert_eq!(collapse(&path, options).ok().text(), expected, "{options:?}");
    }
}

#[test]
fn takes_the_first_event_and_adds_lost_samples() {
    let folder = directory();
    let mut file = Handmade::with_events(&["cycles:u", "faults"]);
    file.push(&comm(7, 7, 1, "a b"));
    file.push(&sample(7, 7, 10, 0, 100));
    file.push(&sample(7, 7, 11, 1, 3));
    file.push(&lost(12, 2));
    let path = file.write(folder.path());
    let folded = collapse(&path, &[]).ok();
    assert_eq!(folded.text(), "[lost] 200\na_b;[unknown] 100\n");
    assert!(folded.stderr.contains("using samples of event cycles:u (1); left out: faults (1)"), "{}", folded.stderr);
    let streamed = run("fg-collapse", ["-"], &file.stream()).ok();
    assert_eq!((streamed.text(), streamed.stderr), (folded.text(), folded.stderr));
    assert_eq!(collapse(&path, &["--event", "faults"]).ok().text(), "[lost] 6\na_b;[unknown] 3\n");
    let refused = collapse(&path, &["--event", "other"]);
    assert!(
        refused.code() != 0 && refused.stderr.contains("--event other: no sample of this event"),
        "{}",
        refused.stderr
    );
}

#[test]
fn reports_missing_and_mismatched_files_once() {
    let folder = directory();
    let mut file = Handmade::default();
    file.push(&comm(7, 7, 1, "app"));
    file.push(&mmap(7, 2, 0x4000, 0x1000, "/nowhere/app", None));
    file.push(&mmap(7, 2, 0x8000, 0x1000, "/proc/self/exe", Some([7; 20])));
    for time in 10..20 {
        file.push(&sample(7, 7, time, 0, 1));
    }
    file.push(&handmade::sample_at(7, 7, 30, 0, 1, 0x8010));
    // A program exists at the path, but whether it is the one that was removed is unknown.
    file.push(&mmap(7, 2, 0xc000, 0x1000, "/proc/self/exe (deleted)", None));
    file.push(&handmade::sample_at(7, 7, 30, 0, 1, 0xc010));
    let folded = collapse(&file.write(folder.path()), &[]).ok();
    assert_eq!(folded.text(), "app;[app] 10\napp;[exe (deleted)] 1\napp;[exe] 1\n");
    let messages: Vec<&str> = folded.stderr.lines().collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(
        messages[1].ends_with("no names from /proc/self/exe (deleted): it was removed before it was recorded"),
        "{messages:?}"
    );
    assert!(messages[0].ends_with("no names from /nowhere/app: not found"), "{messages:?}");
    assert!(messages[2].ends_with("no names from /proc/self/exe: another build of it ran"), "{messages:?}");
}

#[test]
fn reports_damage_in_one_line() {
    let folder = directory();
    let mut file = Handmade::default();
    file.push(&comm(7, 7, 1, "app"));
    (10..20).for_each(|time| file.push(&sample(7, 7, time, 0, 1)));
    let whole = file.bytes();
    let fold = |bytes: &[u8], options: &[&str]| {
        let path = folder.path().join("damaged.data");
        std::fs::write(&path, bytes).unwrap();
        collapse(&path, options)
    };
    assert_eq!(fold(&whole, &[]).ok().text(), "app;[unknown] 10\n");
    let fields = [(16, "attr size"), (24, "attrs"), (32, "attrs' size"), (40, "data"), (48, "data size")];
    for (offset, field) in fields {
        for value in [1, 7, 1 << 20, 1 << 40, u64::MAX, i64::MAX as u64] {
            let mut damaged = whole.clone();
            damaged[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
            let outcome = fold(&damaged, &[]);
            assert!((1..=2).contains(&outcome.stderr.lines().count()), "{field} {value}: {outcome:?}");
        }
    }
    for length in 8..whole.len() {
        let outcome = fold(&whole[..length], &[]);
        assert_eq!(outcome.stderr.lines().count(), 1, "{length}: {outcome:?}");
    }
    let cut = fold(&whole[..whole.len() - 90], &[]);
    assert!(cut.status.success() && cut.stderr.contains("cut short"), "{cut:?}");
    let strict = fold(&whole[..whole.len() - 90], &["--strict"]);
    assert!(strict.code() == 1 && strict.stdout.is_empty(), "{strict:?}");
    // A killed perf has not written the size of the data, nor the sections after it.
    let field = |offset: usize| u64::from_le_bytes(whole[offset..offset + 8].try_into().unwrap()) as usize;
    let mut killed = whole[..field(40) + field(48)].to_vec();
    killed[48..56].fill(0);
    let killed = fold(&killed, &[]);
    assert!(killed.status.success() && killed.stderr.contains("perf record was killed"), "{killed:?}");
    assert_eq!((killed.text().as_str(), killed.stderr.lines().count()), ("app;[unknown] 10\n", 1));
    let swapped = fold(b"2ELIFREP\0\0\0\0\0\0\0\x68", &[]);
    assert!(swapped.stderr.contains("big-endian"), "{swapped:?}");
}

#[test]
fn says_what_follows_a_recording() {
    let folder = directory();
    let mut file = Handmade::default();
    file.push(&comm(7, 7, 1, "app"));
    (10..200).for_each(|time| file.push(&sample(7, 7, time, 0, 1)));
    let whole = file.bytes();
    let path = folder.path().join("two.data");
    std::fs::write(&path, [&whole[..], &whole].concat()).unwrap();
    let behind = format!("{} bytes after the recording, from byte {} on, are not read", whole.len(), whole.len());
    let both = collapse(&path, &[]);
    assert_eq!((both.code(), both.text().as_str()), (1, "app;[unknown] 190\n"));
    assert!(both.stderr.contains(&behind) && both.stderr.lines().count() == 1, "{both:?}");
    assert_eq!(collapse(&path, &["--strict"]).code(), 1);
    let piped = run("fg-collapse", ["-"], &[file.stream(), file.stream()].concat());
    assert_eq!((piped.code(), piped.text().as_str()), (1, "app;[unknown] 190\n"));
    assert!(piped.stderr.contains("another recording begins after"), "{piped:?}");
}

#[test]
fn refuses_to_add_up_events_of_different_units() {
    let folder = directory();
    let mut file = Handmade::with_events(&["cpu_core/cycles/u", "cpu_atom/cycles/", "cycles:k", "faults"]);
    file.push(&comm(7, 7, 1, "app"));
    (0..3).for_each(|event| file.push(&sample(7, 7, 10 + event, event, 100)));
    assert_eq!(collapse(&file.write(folder.path()), &["--event=all"]).ok().text(), "app;[unknown] 300\n");
    file.push(&sample(7, 7, 20, 3, 2));
    let path = file.write(folder.path());
    let refused = collapse(&path, &["--event=all"]);
    assert!(refused.code() != 0 && refused.stdout.is_empty(), "{refused:?}");
    assert!(refused.stderr.contains("different units") && refused.stderr.contains("faults (1)"), "{refused:?}");
    let counted = collapse(&path, &["--event=all", "--weight=samples"]).ok();
    assert_eq!(counted.text(), "app;[unknown] 4\n");
}
