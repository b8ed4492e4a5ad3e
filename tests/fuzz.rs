//! Fuzzes the parsers of all formats with random combinations of real input. They must not panic, hang, or take much
//! memory. Their output must not depend on the number of threads, and must be the same when it is folded again.
//!
//! Each test runs for `FG_FUZZ_SECONDS`, one second by default: `FG_FUZZ_SECONDS=1200 cargo test --release --test
//! fuzz`. `FG_FUZZ_SEED` selects another random sequence. The message of a failure names a file with the failing input.
//! Files in `tests/data/fuzz` are checked at every run.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "cli/perf_data/handmade.rs"]
mod handmade;
#[path = "fuzz/texts.rs"]
mod texts;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::handmade::Handmade;
use self::texts::{Example, Random};
use fgkit::collapse::{Options, collapse, find_format, formats};
use fgkit::diagnostics::Diagnostics;
use fgkit::folded;
use fgkit::input::Source;

/// How long one input may take before it counts as a hang.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the folded text or the error.
fn fold(file: &Path, options: &Options, threads: usize) -> Result<Vec<u8>, String> {
    let options = Options { threads: NonZeroUsize::new(threads), ..options.clone() };
    let profile = collapse(&[Source::File(file.to_owned())], &options, &mut Diagnostics::silent());
    let mut text = Vec::new();
    folded::write(&profile.map_err(|error| error.to_string())?, &mut text).unwrap();
    Ok(text)
}

/// Checks one input. `again` are the options to fold the output with.
fn check(text: &[u8], options: &Options, again: &Options, file: &Path) {
    std::fs::write(file, text).unwrap();
    let start = Instant::now();
    let once = fold(file, options, 1);
    assert!(start.elapsed() < HANG_TIMEOUT, "{} hangs", file.display());
    assert_eq!(fold(file, options, 3), once, "{}", file.display());
    let Ok(once) = once else { return };
    // Some outputs are not read back: a name at the start of the file that begins like compressed data or with a byte
    // order mark, a line that looks like a comment, one like a sum (`Call graph: 5`), and names with escape sequences of
    // terminals, which are dropped from all text but that with zero bytes.
    let is_comment = |line: &[u8]| line.starts_with(b"# ");
    let is_sum = |line: &[u8]| !line.contains(&b';') && line.windows(2).any(|pair| pair == b": ");
    let is_other = |line: &[u8]| is_comment(line) || is_sum(line);
    let marks = ["\u{feff}".as_bytes(), b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"];
    let has_mark = marks.iter().any(|mark| once.starts_with(mark));
    if !once.is_empty() && !has_mark && !once.contains(&0x1b) && !once.split(|byte| *byte == b'\n').any(is_other) {
        std::fs::write(file, &once).unwrap();
        let again = fold(file, again, 1);
        assert!(again.as_ref() == Ok(&once), "read again, {} differs: {again:?}", file.display());
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    peak.and_then(|peak| peak.trim().parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Makes inputs and checks them, for as long as `FG_FUZZ_SECONDS` says.
fn fuzz(mut make: impl FnMut(&mut Random) -> (Vec<u8>, Options), again: &Options) {
    let folder = tempfile::Builder::new().prefix("fg-fuzz-").tempdir().unwrap();
    let file = folder.path().join("text");
    let end = Instant::now() + Duration::from_secs(variable("FG_FUZZ_SECONDS").unwrap_or(1));
    let mut random = Random(variable("FG_FUZZ_SEED").unwrap_or(1));
    let mut count = 0u64;
    while Instant::now() < end {
        let (text, options) = make(&mut random);
        let outcome = std::panic::catch_unwind(|| check(&text, &options, again, &file));
        if let Err(panic) = outcome {
            let failing = std::env::temp_dir().join(format!("fg-fuzz-{}", std::process::id()));
            std::fs::write(&failing, &text).unwrap();
            panic!("{} with {options:?}: {:?}", failing.display(), panic.downcast_ref::<String>());
        }
        count += 1;
    }
    assert!(count > 0 && peak_megabytes() < 1024, "{count} texts, {} MB", peak_megabytes());
}

/// Returns options to read folded text. Without them, odd names may be detected as another format (`@[main]: 3`) or as
/// no profile.
fn as_folded() -> Options {
    Options { format: find_format("folded").ok(), ..Options::default() }
}

#[test]
fn parsers_accept_any_text() {
    let folder = tempfile::Builder::new().prefix("fg-fuzz-").tempdir().unwrap();
    let file = folder.path().join("text");
    let corpus: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz");
    for text in std::fs::read_dir(corpus).into_iter().flatten() {
        check(&std::fs::read(text.unwrap().path()).unwrap(), &Options::default(), &as_folded(), &file);
    }
    fuzz(|random| (random.text(), random.options()), &as_folded());
}

#[test]
fn parsers_accept_damaged_examples_of_all_formats() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collapse/formats");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end != "folded")).collect();
    files.sort();
    let examples: Vec<Example> = files.iter().filter_map(|path| example(path)).collect();
    let mut counts: BTreeMap<&str, u64> = formats().map(|format| (format.name, 0)).collect();
    let make = |random: &mut Random| {
        // Each format equally often, however many examples it has.
        let formats: Vec<_> = counts.keys().copied().collect();
        let name = formats[random.below(formats.len())];
        let of_format: Vec<&Example> = examples.iter().filter(|example| example.format.as_str() == name).collect();
        *counts.entry(name).or_default() += 1;
        let text = match of_format.len() {
            0 => random.text(),
            number => {
                let of_format = of_format[random.below(number)];
                random.mixed(&of_format.text, &examples)
            }
        };
        // The format is given, or detected.
        let format = if random.below(2) == 0 { find_format(name).ok() } else { None };
        (text, Options { format, ..random.options() })
    };
    fuzz(make, &as_folded());
    eprintln!("texts by format: {counts:?}");
}

/// Reads an example. Its file name begins with the name of its format, except for dialects of folded text and JSON.
fn example(path: &Path) -> Option<Example> {
    let stem = path.file_stem()?.to_str()?;
    let mut names: Vec<_> = formats().map(|format| format.name).filter(|name| stem.starts_with(name)).collect();
    names.sort_by_key(|name| name.len());
    let name = names.pop().unwrap_or(match stem {
        "chrome-timeline" => "trace-event",
        "samply" => "firefox",
        _ => "folded",
    });
    let format = find_format(name).ok()?;
    Some(Example { text: std::fs::read(path).ok()?, format })
}

/// Makes a random perf.data file: records of all kinds with odd sizes and numbers, then damage.
fn random_recording(random: &mut Random) -> Vec<u8> {
    let mut file = Handmade::with_events(if random.below(2) == 0 { &["cycles"] } else { &["cycles:u", "faults"] });
    for _ in 0..random.below(80) {
        let (pid, time) = (random.below(4) as u32, random.below(50) as u64);
        let address = [0x4000, 0x8010, 0, u64::MAX, 1 << 63][random.below(5)];
        match random.below(9) {
            0 => file.push(&handmade::comm(pid, pid, time, ["app", "java", "a b", ""][random.below(4)])),
            1 => file.push(&handmade::exit(pid, pid, time)),
            2 => file.push(&handmade::lost(time, [1, u64::MAX][random.below(2)])),
            3 => file.finish_round(),
            4 => {
                let path = ["/bin/sh", "/nowhere", "[vdso]", "//anon", "/dev/zero", ""][random.below(6)];
                let (start, length) =
                    ([0, 0x4000, u64::MAX - 5][random.below(3)], [0, 0x1000, u64::MAX][random.below(3)]);
                file.push(&handmade::mmap(pid, time, start, length, path, (random.below(9) == 0).then_some([7; 20])));
            }
            5 => {
                let kind = [64, 65, 66, 67, 71, 78, 80, 81, 83, 2000][random.below(10)];
                let body: Vec<u8> = (0..random.below(60)).map(|_| random.below(256) as u8).collect();
                file.push(&handmade::record(kind, random.below(1 << 16) as u16, &body));
            }
            _ => file.push(&handmade::sample_at(pid, pid, time, random.below(3) as u64, 1, address)),
        }
    }
    let mut bytes = if random.below(3) == 0 { file.stream() } else { file.bytes() };
    for _ in 0..random.below(4) {
        match random.below(3) {
            0 => random.damage(&mut bytes),
            // A wrong number where the format has numbers.
            1 => {
                let at = random.below(bytes.len().max(8) / 8) * 8;
                let number = [0, 1, 7, 1 << 20, 1 << 40, u64::MAX, 1 << 63][random.below(7)];
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    word.copy_from_slice(&u64::to_le_bytes(number));
                }
            }
            _ => {
                let at = random.below(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    bytes
}

#[test]
fn parsers_accept_any_recording() {
    let folder = tempfile::Builder::new().prefix("fg-fuzz-").tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let end = Instant::now() + Duration::from_secs(variable("FG_FUZZ_SECONDS").unwrap_or(1));
    let mut random = Random(variable("FG_FUZZ_SEED").unwrap_or(1));
    let mut count = 0u64;
    while Instant::now() < end {
        let (bytes, options) = (random_recording(&mut random), random.options());
        std::fs::write(&file, &bytes).unwrap();
        let start = Instant::now();
        if std::panic::catch_unwind(|| drop(fold(&file, &options, 1))).is_err() {
            let failing = std::env::temp_dir().join(format!("fg-fuzz-{}.data", std::process::id()));
            std::fs::write(&failing, &bytes).unwrap();
            panic!("{} with {options:?}", failing.display());
        }
        assert!(start.elapsed() < HANG_TIMEOUT, "{} hangs", file.display());
        count += 1;
    }
    eprintln!("{count} recordings, {} MB", peak_megabytes());
    assert!(count > 0 && peak_megabytes() < 1024);
}
