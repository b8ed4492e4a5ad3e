//! `--script`: samples in the format of `perf script`.

use crate::support::programs::program;
use crate::support::recording::{Profile, can_record, record};
use crate::support::{Outcome, command, is_installed, run, run_command};

/// A printed sample.
#[derive(Debug)]
struct Sample {
    comm: String,
    event: String,
    period: Option<u64>,
    micros: u64,
    /// Leaf first.
    frames: Vec<Frame>,
}

#[derive(Debug)]
struct Frame {
    address: u64,
    symbol: String,
    /// Offset of the address in the symbol, as printed. None for kernel addresses without permission to read symbols.
    offset: Option<String>,
    file: String,
}

/// Parses standard output. Panics at a sample that is not in the format of `perf script`.
#[track_caller]
fn parse_samples(outcome: &Outcome) -> Vec<Sample> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let samples = text.split_terminator("\n\n");
    samples.map(|sample| parse_sample(sample).unwrap_or_else(|| panic!("not a sample: {sample}"))).collect()
}

/// Parses `COMM PID/TID [CPU] SECONDS.MICROS: [PERIOD] EVENT: ` and frames, `\tADDRESS SYMBOL+OFFSET (FILE)`.
fn parse_sample(text: &str) -> Option<Sample> {
    let (header, frames) = text.split_once('\n').unwrap_or((text, ""));
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
    let frames = frames.lines().map(parse_frame).collect::<Option<_>>()?;
    (numbers && !comm.starts_with(' ')).then_some(Sample { comm, event, period, micros, frames })
}

fn parse_frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.strip_prefix('\t')?.trim_start().split_once(' ')?;
    let (symbol, file) = rest.strip_suffix(')')?.split_once(" (")?;
    let (symbol, offset) = match symbol.split_once("+0x") {
        Some((symbol, offset)) => (symbol, Some(offset.to_owned())),
        None => (symbol, None),
    };
    let address = u64::from_str_radix(address, 16).ok()?;
    Some(Frame { address, symbol: symbol.to_owned(), offset, file: file.to_owned() })
}

/// True if a sample of the program `busy` shows the inlined call in `spin`.
fn shows_inlined_call(sample: &Sample, busy: &str) -> bool {
    let [step, spin, main, ..] = &sample.frames[..] else { return false };
    sample.comm == "busy"
        && [&step.symbol, &spin.symbol, &main.symbol] == ["step", "spin", "main"]
        && (&*step.file, &*spin.file) == ("inlined", busy)
        && step.address == spin.address
        && spin.offset.is_some()
}

#[test]
fn prints_samples_in_order_of_time() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["--script", "-e", "cpu-clock", "--", &busy, "0.2"]).ok();
    let samples = parse_samples(&outcome);
    assert!(outcome.stderr.contains(&format!("fg-record: {} samples of cpu-clock", samples.len())), "{outcome:?}");
    assert!(samples.is_sorted_by_key(|sample| sample.micros));
    assert!(samples.iter().all(|sample| sample.event == "cpu-clock" && sample.period.is_none()));
    assert!(samples.iter().any(|sample| shows_inlined_call(sample, &busy)), "{:#?}", samples.last());
}

#[test]
fn prints_periods_if_they_are_the_weight() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let outcome = record(["--script", "--weight", "period", "-e", "cpu-clock", "--", &busy, "0.2"]).ok();
    let samples = parse_samples(&outcome);
    assert!(!samples.is_empty() && samples.iter().all(|sample| sample.period == Some(1_003_009)), "{outcome:?}");
}

#[test]
fn prints_thread_names() {
    let (true, Some(threads)) = (can_record(), program("threads")) else { return };
    let outcome = record(["--script", "--", &threads, "names"]).ok();
    let samples = parse_samples(&outcome);
    for name in ["a:b", "new line", "two words", "\u{1b}[31mred", "lead", "1 2 3", "[unknown]"] {
        assert!(samples.iter().any(|sample| sample.comm == name), "{name:?}");
    }
    // A name that is not UTF-8 is printed as it is.
    assert!(outcome.stdout.windows(4).any(|bytes| bytes == b"\n\xff\xfe "));
}

/// Asserts that a reader of the script finds all samples and the hot stack.
fn assert_folded(script: &Outcome, folded: &[u8]) {
    let profile = Profile::parse(folded);
    assert_eq!(profile.total(), parse_samples(script).len() as u64);
    profile.assert_contains(&["busy", "_start", "main", "spin", "step"]);
}

#[test]
fn fg_collapse_reads_the_script() {
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let script = record(["--script", "--", &busy, "0.2"]).ok();
    assert_folded(&script, &run("fg-collapse", ["-"], &script.stdout).ok().stdout);
}

/// One more reader, where it is installed. The tests above check the format.
#[test]
fn inferno_reads_the_script() {
    let Some(inferno) = ["inferno-collapse-perf", "/opt/inferno/bin/inferno-collapse-perf"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists() || is_installed(path))
    else {
        return;
    };
    let (true, Some(busy)) = (can_record(), program("busy")) else { return };
    let script = record(["--script", "--", &busy, "0.2"]).ok();
    assert_folded(&script, &run_command(command(inferno), &script.stdout).ok().stdout);
}
