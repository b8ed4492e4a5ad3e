//! Random texts, combined from pieces of real input.

use std::io::Write as _;

use fgkit::collapse::{EventChoice, FormatName, Options};

/// An example of a format.
pub struct Example {
    pub text: Vec<u8>,
    pub format: FormatName,
}

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

/// The pseudorandom number generator splitmix64.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }

    /// Makes a text from perf script headers and other lines, and damages it.
    pub fn text(&mut self) -> Vec<u8> {
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

    /// Reorders the lines of an example, perhaps mixes in those of another, and damages the text.
    pub fn mixed(&mut self, example: &[u8], examples: &[Example]) -> Vec<u8> {
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
                0 => self.replace_number(&mut text),
                1 => self.nest(&mut text),
                _ => self.damage(&mut text),
            }
        }
        match self.below(12) {
            0 => self.gzip(&text),
            _ => text,
        }
    }

    /// Replaces a number, in text or in bytes.
    pub fn replace_number(&mut self, text: &mut Vec<u8>) {
        let numbers =
            ["0", "-1", "18446744073709551615", "9223372036854775808", "1e308", "0.0000001", "4294967296", "NaN"];
        let varints: [&[u8]; 4] =
            [b"\x00", b"\x7f", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"];
        let from = self.below(text.len().max(1));
        let digit = text.iter().skip(from).position(u8::is_ascii_digit).map(|at| from + at);
        match digit.filter(|_| self.below(8) > 0) {
            Some(at) => {
                let end = text[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |end| at + end);
                text.splice(at..end, numbers[self.below(numbers.len())].bytes());
            }
            None if from < text.len() => drop(text.splice(from..=from, varints[self.below(4)].iter().copied())),
            None => {}
        }
    }

    /// Inserts nested brackets or tags.
    pub fn nest(&mut self, text: &mut Vec<u8>) {
        let piece = ["[", "{\"a\":", "{\"children\":[", "<a>", "&e1;", "(", "<", "  "][self.below(8)];
        let at = self.below(text.len() + 1);
        let depth = [3, 40, 3000, 100_000][[0, 0, 0, 1, 1, 1, 1, 2, 2, 3][self.below(10)]];
        text.splice(at..at, piece.repeat(depth).into_bytes());
    }

    /// Compresses a text with gzip, and sometimes damages the result.
    pub fn gzip(&mut self, text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        let mut packed = encoder.finish().unwrap();
        if self.below(3) == 0 {
            self.damage(&mut packed);
        }
        packed
    }

    /// Removes, replaces, repeats or truncates bytes.
    pub fn damage(&mut self, text: &mut Vec<u8>) {
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

    /// Returns random options.
    pub fn options(&mut self) -> Options {
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
