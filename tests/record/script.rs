//! `--script`: each sample as `perf script` prints it.

use std::process::Command;

use crate::folded::{Folded, may_record, record};
use crate::programs::program;
use crate::support::{Outcome, installed, run, run_command, skip};

/// A sample as it is printed.
#[derive(Debug)]
struct Sample {
    comm: String,
    period: Option<u64>,
    event: String,
    micros: u64,
    /// Innermost first: address, symbol with its offset, file.
    frames: Vec<(u64, String, String)>,
}

/// Reads what was printed; every line must be of the form that perf prints.
#[track_caller]
fn samples(outcome: &Outcome) -> Vec<Sample> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let paragraphs = text.split_terminator("\n\n");
    paragraphs.map(|paragraph| sample(paragraph).unwrap_or_else(|| panic!("{paragraph}"))).collect()
}

/// `COMM PID/TID [CPU] SECONDS.MICROS: [PERIOD] EVENT: `, and for each frame `\tADDRESS SYMBOL+OFFSET (FILE)`.
fn sample(paragraph: &str) -> Option<Sample> {
    let (header, frames) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
    let (left, right) = header.split_once(": ")?;
    let (left, time) = left.rsplit_once(' ')?;
    let (left, cpu) = left.trim_end().strip_suffix(']')?.rsplit_once(" [")?;
    let (comm, ids) = left.trim_end().rsplit_once(' ')?;
    let (pid, tid) = ids.split_once('/')?;
    let (seconds, micros) = time.split_once('.')?;
    let mut words = right.strip_suffix(": ")?.split_whitespace();
    let event = words.next_back()?.to_owned();
    let period = words.next().map(|word| word.parse().unwrap());
    let numbers = [pid, tid, cpu].iter().all(|word| word.parse::<u32>().is_ok()) && micros.len() == 6;
    let micros = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let comm = comm.trim_end().to_owned();
    let frames = frames.lines().map(frame).collect::<Option<_>>()?;
    (numbers && !comm.starts_with(' ')).then_some(Sample { comm, period, event, micros, frames })
}

fn frame(line: &str) -> Option<(u64, String, String)> {
    let (address, rest) = line.strip_prefix('\t')?.trim_start().split_once(' ')?;
    let (symbol, file) = rest.strip_suffix(')')?.split_once(" (")?;
    Some((u64::from_str_radix(address, 16).ok()?, symbol.to_owned(), file.to_owned()))
}

/// Addresses of the kernel's have no symbols without its leave.
fn name(symbol: &str) -> &str {
    symbol.split_once("+0x").map_or(symbol, |(name, _)| name)
}

#[test]
fn each_sample_is_printed_in_the_order_of_time_and_adds_up() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--script", "-e", "cpu-clock", "--", &busy, "0.2"]).ok();
    let samples = samples(&outcome);
    assert!(outcome.stderr.contains(&format!("fg-record: {} samples of cpu-clock", samples.len())), "{outcome:?}");
    assert!(samples.is_sorted_by_key(|sample| sample.micros));
    assert!(samples.iter().all(|sample| sample.event == "cpu-clock" && sample.period.is_none()));
    let inlined = |sample: &Sample| {
        let names: Vec<_> = sample.frames.iter().map(|(_, symbol, _)| name(symbol)).collect();
        let files: Vec<_> = sample.frames.iter().map(|(_, _, file)| &**file).collect();
        sample.comm == "busy"
            && names.starts_with(&["step", "spin", "main"])
            && files[0] == "inlined"
            && files[1] == busy
            && sample.frames[0].0 == sample.frames[1].0
            && sample.frames[1].1.contains("+0x")
    };
    let hot = samples.iter().filter(|sample| inlined(sample)).count();
    assert!(hot * 10 > samples.len() * 8, "{hot} of {}: {:#?}", samples.len(), samples.last());
}

#[test]
fn a_period_is_printed_where_it_is_the_weight() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let outcome = record(["--script", "--weight", "period", "-e", "cpu-clock", "--", &busy, "0.3"]).ok();
    let nanoseconds: u64 = samples(&outcome).iter().map(|sample| sample.period.unwrap()).sum();
    assert!((200_000_000..600_000_000).contains(&nanoseconds), "{nanoseconds}");
}

#[test]
fn names_of_threads_are_printed_as_they_are() {
    let (true, Some(threads)) = (may_record(), program("threads")) else { return };
    let outcome = record(["--script", "--", &threads, "names"]).ok();
    let samples = samples(&outcome);
    for name in ["a:b", "new line", "two words", "\u{1b}[31mred", "lead", "1 2 3", "[unknown]"] {
        assert!(samples.iter().any(|sample| sample.comm == name), "{name:?}");
    }
    // A name is bytes.
    assert!(outcome.stdout.windows(4).any(|bytes| bytes == b"\n\xff\xfe "));
}

/// What all readers must agree on: the hot stack, and the sum.
fn assert_read_alike(script: &Outcome, folded: &[u8]) {
    let profile = Folded::parse(folded);
    assert_eq!(profile.total(), samples(script).len() as u64);
    let straight = Folded::of(&record(["--", &program("busy").unwrap(), "0.2"]).ok());
    let hottest = |profile: &Folded| profile.0.iter().max_by_key(|(_, weight)| *weight).unwrap().0.clone();
    assert_eq!(hottest(&profile), hottest(&straight));
}

#[test]
fn our_own_reader_takes_it() {
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let script = record(["--script", "--", &busy, "0.2"]).ok();
    let folded = run("fg-collapse", ["-"], &script.stdout);
    if !folded.status.success() && folded.stderr.contains("folded") {
        return skip("this fg-collapse reads no perf script text");
    }
    assert_read_alike(&script, &folded.ok().stdout);
}

#[test]
fn infernos_reader_takes_it() {
    let Some(reader) = ["inferno-collapse-perf", "/opt/inferno/bin/inferno-collapse-perf"]
        .into_iter()
        .find(|reader| std::path::Path::new(reader).exists() || installed(reader))
    else {
        // One more reader where it is there; the grammar is tested above.
        return;
    };
    let (true, Some(busy)) = (may_record(), program("busy")) else { return };
    let script = record(["--script", "--", &busy, "0.2"]).ok();
    let folded = run_command(Command::new(reader), &script.stdout);
    assert_read_alike(&script, &folded.ok().stdout);
}
