//! Texts that nobody would write, made of pieces that somebody did: the readers of all formats neither panic nor hang nor
//! take much memory, and what they make of a text does not depend on threads, on where it is cut, or on whether it is
//! read once more.
//!
//! A second by default; `FG_FUZZ_SECONDS=1200 cargo test --release --test fuzz` for long, `FG_FUZZ_SEED` for another
//! beginning. A text that fails is kept and named; put into `tests/data/fuzz`, it is tried at every run.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "cli/perf_data/handmade.rs"]
mod handmade;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::handmade::Handmade;
use fgkit::collapse::{EventChoice, Format, Options, collapse, format_called, formats};
use fgkit::diagnostics::Diagnostics;
use fgkit::folded;
use fgkit::input::Source;

const HEADERS: [&str; 20] = [
    "java 25607 4794564.109216: cycles:",
    "java 12688 [002] 6544038.708352: 235 cpu-clock: ",
    "V8 WorkerThread 24636/25607 [000] 94564.109216: 100 cycles:",
    "vote   913    72.176760:     257597 cycles:uppp:",
    "false 64414 20110.539270:   34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])",
    "java 19983 cycles:",
    ":-1 -1 2.0: 3 cycles:",
    "12 34 5.5: 9 2.0: 1 cycles:",
    "aa 1",
    "a;b 1/2 2.0: 18446744073709551615 cycles:",
    "aa 9 2.0: sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b",
    "aa 9 [000] 2.0: PERF_RECORD_COMM exec: aa:9/9",
    "aa 9 2.0: PERF_RECORD_LOST lost 18446744073709551615",
    "aa\t9 [001] 2.0: 1 cpu-cycles:",
    "     0/0     [000] 2.0: PERF_RECORD_LOST lost 12",
    "# captured on: today",
    "main;f;g 12",
    "main;f;operator new 0.5",
    "a;b 1 2",
    "\u{feff}main 1",
];

const LINES: [&str; 24] = [
    "\t            7f00 f+0x1 (/x)",
    "\t        80000102 [unknown] ([unknown])",
    "\tffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])",
    "\t            7f00 P<int>::operator->() const+0x7 (/opt/My App/x (deleted))",
    "\t            7f00 (anonymous namespace)::f(int)::{lambda(int)#1}::operator()(int) const+0x7 (/x)",
    "\t            7f00 La;::f->Lb;::<init>+0x7 (/tmp/perf-1.map)",
    "\t            7f00 _RNvC7mycrate3foo+0x7 (inlined)",
    "\t            7f00 _ZNSt6vectorIiSaIiEE9push_backERKi+0x7 (/x)",
    "\t            7f00 _$LT$core..result..Result$LT$T$GT$$GT$::and_then::h47fa4b8545196b9b+0x1 (/x)",
    "\t            7f00 ",
    "\t            7f00",
    "\t            7f00 +0x10 (/x)",
    "\t            7f00 (/x)",
    "  7f00 foo",
    "7f00 foo (bar",
    "  f.c:12",
    "  ??:0",
    " 0x4005d0/0x4005e0/P/-/-/0",
    "",
    " \t ",
    "gibberish",
    "a b",
    "\u{1b}[31m;;; ; 7",
    "+0x (()",
];

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }

    fn text(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..self.below(60) {
            let line = match self.below(4) {
                0 => HEADERS[self.below(HEADERS.len())],
                1 if self.below(2) == 0 => "",
                _ => LINES[self.below(LINES.len())],
            };
            text.extend_from_slice(line.as_bytes());
            text.extend_from_slice(if self.below(12) == 0 { b"\r\n" } else { b"\n" });
        }
        for _ in 0..self.below(5) {
            self.damage(&mut text);
        }
        if self.below(200) == 0 {
            text = text.repeat(1 + self.below(300));
        }
        text
    }

    /// The lines of an example of a format, and perhaps of another, in another order, and damaged.
    fn mixed(&mut self, example: &[u8], examples: &[Example]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut lines: Vec<&[u8]> = example.split_inclusive(|byte| *byte == b'\n').collect();
        if self.below(5) == 0 {
            lines.extend(examples[self.below(examples.len())].text.split_inclusive(|byte| *byte == b'\n'));
        }
        let changes = self.below(8);
        for _ in 0..changes {
            let (from, to) = (self.below(lines.len()), self.below(lines.len()));
            match self.below(4) {
                0 => lines.swap(from, to),
                1 => lines.insert(to, lines[from]),
                2 => drop(lines.drain(from.min(to)..from.max(to))),
                _ => lines = lines.repeat(1 + self.below(3)),
            }
            if lines.is_empty() || lines.len() > 10_000 {
                break;
            }
        }
        text.extend(lines.concat());
        for _ in 0..self.below(6) {
            match self.below(4) {
                0 => self.lie(&mut text),
                1 => self.nest(&mut text),
                _ => self.damage(&mut text),
            }
        }
        match self.below(12) {
            0 => self.packed(&text),
            _ => text,
        }
    }

    /// Another number where one stands, as text or as bytes.
    fn lie(&mut self, text: &mut Vec<u8>) {
        let numbers =
            ["0", "-1", "18446744073709551615", "9223372036854775808", "1e308", "0.0000001", "4294967296", "NaN"];
        let lies: [&[u8]; 4] = [b"\x00", b"\x7f", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"];
        let from = self.below(text.len().max(1));
        let digit = text.iter().skip(from).position(u8::is_ascii_digit).map(|at| from + at);
        match digit.filter(|_| self.below(8) > 0) {
            Some(at) => {
                let end = text[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |end| at + end);
                text.splice(at..end, numbers[self.below(numbers.len())].bytes());
            }
            None if from < text.len() => drop(text.splice(from..=from, lies[self.below(4)].iter().copied())),
            None => {}
        }
    }

    /// Brackets in brackets, tags in tags.
    fn nest(&mut self, text: &mut Vec<u8>) {
        let piece = ["[", "{\"a\":", "{\"children\":[", "<a>", "&e1;", "(", "<", "  "][self.below(8)];
        let at = self.below(text.len() + 1);
        let depth = [3, 40, 3000, 100_000][[0, 0, 0, 1, 1, 1, 1, 2, 2, 3][self.below(10)]];
        text.splice(at..at, piece.repeat(depth).into_bytes());
    }

    /// As gzip, mostly whole.
    fn packed(&mut self, text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        let mut packed = encoder.finish().unwrap();
        if self.below(3) == 0 {
            self.damage(&mut packed);
        }
        packed
    }

    fn damage(&mut self, text: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let (at, length) = (self.below(text.len()), 1 + self.below(20));
        let end = (at + length).min(text.len());
        match self.below(6) {
            0 => drop(text.drain(at..end)),
            1 => text[at] = b" \t\n:;()[]<>/+-.0x\0\xff"[self.below(19)],
            2 => text[at] = self.below(256) as u8,
            3 => text.truncate(end),
            4 => {
                let piece = text[at..end].repeat(1 + self.below(2000));
                text.splice(at..at, piece);
            }
            _ => text.extend_from_within(at..end),
        }
    }

    fn options(&mut self) -> Options {
        let mut yes = || self.below(4) == 0;
        let mut options = Options {
            verbatim: yes(),
            pid: yes(),
            tid: yes(),
            kernel: yes(),
            jit: yes(),
            addrs: yes(),
            srcline: yes(),
            ..Options::default()
        };
        match self.below(6) {
            0 => options.event = EventChoice::All,
            1 => options.skip_after = vec![b"f".to_vec()],
            2 => options.time = "+0,+1".parse().ok(),
            _ => {}
        }
        options
    }
}

/// The folded text, or what went wrong.
fn fold(file: &Path, options: &Options, threads: usize) -> Result<Vec<u8>, String> {
    let options = Options { threads: NonZeroUsize::new(threads), ..options.clone() };
    let profile = collapse(&[Source::File(file.to_owned())], &options, &mut Diagnostics::silent());
    let mut text = Vec::new();
    folded::write(&profile.map_err(|error| error.to_string())?, &mut text).unwrap();
    Ok(text)
}

fn check(text: &[u8], options: &Options, again: &Options, file: &Path) {
    std::fs::write(file, text).unwrap();
    let start = Instant::now();
    let once = fold(file, options, 1);
    assert!(start.elapsed() < Duration::from_secs(20), "{} takes long", file.display());
    assert_eq!(fold(file, options, 3), once, "{}", file.display());
    let Ok(once) = once else { return };
    // A byte-order mark that begins a frame is lost where that frame begins a file.
    // Neither is what looks like a remark a stack again.
    let remark = |line: &[u8]| line.starts_with(b"# ");
    if !once.is_empty() && !once.starts_with("\u{feff}".as_bytes()) && !once.split(|byte| *byte == b'\n').any(remark) {
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

/// Makes texts and checks them for as long as is wanted.
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

#[test]
fn readers_take_anything() {
    let folder = tempfile::Builder::new().prefix("fg-fuzz-").tempdir().unwrap();
    let file = folder.path().join("text");
    let kept: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz");
    for text in std::fs::read_dir(kept).into_iter().flatten() {
        check(&std::fs::read(text.unwrap().path()).unwrap(), &Options::default(), &Options::default(), &file);
    }
    fuzz(|random| (random.text(), random.options()), &Options::default());
}

/// A text of a format.
struct Example {
    text: Vec<u8>,
    format: &'static Format,
}

#[test]
fn readers_of_all_formats_take_anything() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/collapse/formats");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end != "folded")).collect();
    files.sort();
    let examples: Vec<Example> = files.iter().filter_map(|path| example(path)).collect();
    let mut counts: BTreeMap<&str, u64> = formats().map(|format| (format.name, 0)).collect();
    // Folded text may read as some other format's: `@[main]: 3`.
    let again = Options { format: format_called("folded").ok(), ..Options::default() };
    let make = |random: &mut Random| {
        // Each format as often as any other, however many examples it has.
        let formats: Vec<_> = counts.keys().copied().collect();
        let name = formats[random.below(formats.len())];
        let of_format: Vec<&Example> = examples.iter().filter(|example| example.format.name == name).collect();
        *counts.entry(name).or_default() += 1;
        let text = match of_format.len() {
            0 => random.text(),
            number => {
                let of_format = of_format[random.below(number)];
                random.mixed(&of_format.text, &examples)
            }
        };
        // Told by the text, or given.
        let format = if random.below(2) == 0 { format_called(name).ok() } else { None };
        (text, Options { format, ..random.options() })
    };
    fuzz(make, &again);
    eprintln!("texts by format: {counts:?}");
}

/// An example whose file is called as its format, or begins so; what is not is a dialect of folded text, or JSON.
fn example(path: &Path) -> Option<Example> {
    let stem = path.file_stem()?.to_str()?;
    let mut named: Vec<_> = formats().filter(|format| stem.starts_with(format.name)).collect();
    named.sort_by_key(|format| format.name.len());
    let format = named.pop().or_else(|| {
        format_called(match stem {
            "chrome-timeline" => "trace-event",
            "samply" => "firefox",
            _ => "folded",
        })
        .ok()
    })?;
    Some(Example { text: std::fs::read(path).ok()?, format })
}

/// A recording that nobody made: records of all kinds with odd sizes and numbers, then damaged.
fn recording(random: &mut Random) -> Vec<u8> {
    let mut file = Handmade::with_events(if random.below(2) == 0 { &["cycles"] } else { &["cycles:u", "faults"] });
    for _ in 0..random.below(80) {
        let (pid, time) = (random.below(4) as u32, random.below(50) as u64);
        let address = [0x4000, 0x8010, 0, u64::MAX, 1 << 63][random.below(5)];
        match random.below(9) {
            0 => file.push(&handmade::comm(pid, pid, time, ["app", "java", "a b", ""][random.below(4)])),
            1 => file.push(&handmade::exit(pid, pid, time)),
            2 => file.push(&handmade::lost(time, [1, u64::MAX][random.below(2)])),
            3 => file.round(),
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
            // A number that lies, where numbers stand.
            1 => {
                let at = random.below(bytes.len().max(8) / 8) * 8;
                let lie = [0, 1, 7, 1 << 20, 1 << 40, u64::MAX, 1 << 63][random.below(7)];
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    word.copy_from_slice(&u64::to_le_bytes(lie));
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
fn recordings_may_be_anything() {
    let folder = tempfile::Builder::new().prefix("fg-fuzz-").tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let end = Instant::now() + Duration::from_secs(variable("FG_FUZZ_SECONDS").unwrap_or(1));
    let mut random = Random(variable("FG_FUZZ_SEED").unwrap_or(1));
    let mut count = 0u64;
    while Instant::now() < end {
        let (bytes, options) = (recording(&mut random), random.options());
        std::fs::write(&file, &bytes).unwrap();
        let start = Instant::now();
        if std::panic::catch_unwind(|| drop(fold(&file, &options, 1))).is_err() {
            let failing = std::env::temp_dir().join(format!("fg-fuzz-{}.data", std::process::id()));
            std::fs::write(&failing, &bytes).unwrap();
            panic!("{} with {options:?}", failing.display());
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{} takes long", file.display());
        count += 1;
    }
    eprintln!("{count} recordings, {} MB", peak_megabytes());
    assert!(count > 0 && peak_megabytes() < 1024);
}
