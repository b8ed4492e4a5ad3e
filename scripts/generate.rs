//! Generates profiles for benchmarks: the same bytes on every machine, without repetition.
//!
//!     rustc -O -o generate scripts/generate.rs
//!     generate fp SAMPLES > fp.txt          # perf script text, short names and broken frame-pointer chains
//!     generate dwarf SAMPLES > dwarf.txt    # perf script text, long C++ names
//!     generate folded STACKS PARTS PREFIX   # sorted folded files PREFIX0, PREFIX1, …
//!
//! Samples follow a Yule-Simon process over a random call graph: most repeat an earlier stack, so that counts follow a power
//! law; the others branch off from one. Integer arithmetic only, so that results do not depend on rounding.

use std::io::{self, BufWriter, Write};

const WORDS: [&str; 32] = [
    "alloc", "block", "cache", "clone", "copy", "decode", "drop", "emit", "entry", "fetch", "find", "flush", "frame",
    "get", "hash", "index", "insert", "iter", "lock", "lookup", "map", "merge", "node", "page", "parse", "poll", "push",
    "read", "sched", "sort", "visit", "write",
];

/// The splitmix64 random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    fn chance(&mut self, per_mille: usize) -> bool {
        self.below(1000) < per_mille
    }

    /// Returns the number of successes before the first failure.
    fn geometric(&mut self, per_mille: usize, most: usize) -> usize {
        let mut count = 0;
        while count < most && self.chance(per_mille) {
            count += 1;
        }
        count
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws ranks by Zipf's law.
struct Zipf(Vec<u64>);

impl Zipf {
    fn new(size: usize) -> Self {
        let mut sum = 0;
        Self((1..=size as u64).map(|rank| { sum += (1 << 32) / rank; sum }).collect())
    }

    fn pick(&self, random: &mut Random) -> usize {
        let at = random.below(self.0[self.0.len() - 1] as usize) as u64;
        self.0.partition_point(|end| *end <= at)
    }
}

struct Function {
    name: String,
    module: String,
    base: u64,
    size: u64,
    callees: Vec<u32>,
}

struct Program {
    functions: Vec<Function>,
    comms: Vec<String>,
    popular: Zipf,
}

fn words(random: &mut Random, count: usize, separator: &str) -> String {
    (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(separator)
}

fn long_name(random: &mut Random, depth: usize) -> String {
    let mut name = words(random, 2, "::");
    if depth > 0 && random.chance(700) {
        let arguments: Vec<String> = (0..1 + random.below(3)).map(|_| long_name(random, depth - 1)).collect();
        name += &format!("<{}>", arguments.join(", "));
    }
    name
}

fn program(random: &mut Random, long: bool) -> Program {
    let (user, kernel) = if long { (18_000, 2_000) } else { (17_000, 6_000) };
    let per_mille_kernel = if long { 30 } else { 120 };
    let (zipf_user, zipf_kernel, zipf_modules) = (Zipf::new(user), Zipf::new(kernel), Zipf::new(40));
    let functions = (0..user + kernel).map(|number| {
        let in_kernel = number >= user;
        let mut name = match long && !in_kernel {
            true => format!("{}::{}", long_name(random, 3), words(random, 1, "")),
            false => {
                let (count, separator) = (2 + random.geometric(500, 5), if random.chance(500) { "_" } else { "::" });
                words(random, count, separator)
            }
        };
        if random.chance(500) || !long {
            name += &format!("_{:x}", random.below(1 << 16));
        }
        let module = match in_kernel {
            true => "[kernel.kallsyms]".to_owned(),
            false => format!("/usr/lib/x86_64-linux-gnu/lib{}.so.{}", WORDS[zipf_modules.pick(random) % 32], zipf_modules.pick(random)),
        };
        let base = if in_kernel { 0xffff_ffff_8100_0000 } else { 0x7f00_0000_0000 } + number as u64 * 4096;
        let count = if random.chance(300) { 1 } else { 1 + random.geometric(950, 59) };
        let callees = (0..count).map(|_| {
            let callee = match in_kernel || random.chance(per_mille_kernel) {
                true => user + mix(zipf_kernel.pick(random) as u64 ^ 77) as usize % kernel,
                false => mix(zipf_user.pick(random) as u64) as usize % user,
            };
            callee as u32
        });
        let callees = callees.collect();
        Function { name, module, base, size: 64 + random.below(4000) as u64, callees }
    });
    let functions = functions.collect();
    let comms = (0..40).map(|_| words(random, 1, "")).collect();
    Program { functions, comms, popular: Zipf::new(60) }
}

/// All distinct stacks, and the stack of each sample. The first id of a stack is its thread.
struct Samples {
    stacks: Vec<Vec<u32>>,
    drawn: Vec<u32>,
}

impl Samples {
    fn draw(&mut self, program: &Program, random: &mut Random, new_per_mille: usize) -> usize {
        if !self.drawn.is_empty() && !random.chance(new_per_mille) {
            let again = self.drawn[random.below(self.drawn.len())];
            self.drawn.push(again);
            return again as usize;
        }
        let mut stack = match self.drawn.is_empty() || random.chance(2) {
            true => vec![random.below(program.comms.len()) as u32],
            false => self.stacks[self.drawn[random.below(self.drawn.len())] as usize].clone(),
        };
        let cut = random.geometric(750, 40).min(stack.len() - 1);
        stack.truncate(stack.len() - cut);
        for _ in 0..(1 + random.geometric(650, 30)).max(4usize.saturating_sub(stack.len())) {
            let callee = match stack.len() {
                1 => random.below(17_000) as u32,
                _ => {
                    let callees = &program.functions[stack[stack.len() - 1] as usize].callees;
                    let rank = program.popular.pick(random).min(callees.len() * 8 - 1) % callees.len();
                    callees[rank]
                }
            };
            if stack.len() < 127 {
                stack.push(callee);
            }
        }
        self.drawn.push(self.stacks.len() as u32);
        self.stacks.push(stack);
        self.stacks.len() - 1
    }
}

fn script(long: bool, count: u64, out: &mut impl Write) -> io::Result<()> {
    let random = &mut Random(1);
    let program = program(random, long);
    let mut samples = Samples { stacks: vec![], drawn: vec![] };
    for number in 0..count {
        let drawn = samples.draw(&program, random, 400);
        let stack = &samples.stacks[drawn];
        let (seconds, micros) = (1000 + number / 9999, number % 9999 * 100);
        let (comm, cpu) = (&program.comms[stack[0] as usize], number % 2);
        writeln!(out, "{comm:>5} {:5} [{cpu:03}] {seconds:5}.{micros:06}:     100010 cpu-clock:pppH: ", 2000 + stack[0])?;
        let key = stack.iter().fold(0, |key, id| mix(key ^ u64::from(*id)));
        for depth in (1..stack.len()).rev() {
            let function = &program.functions[stack[depth] as usize];
            let offset = match depth + 1 == stack.len() {
                true => mix(program.popular.pick(random) as u64 ^ function.base),
                false => mix(u64::from(stack[depth]) << 32 ^ u64::from(stack[depth + 1]) ^ u64::from(random.chance(100))),
            } % function.size;
            writeln!(out, "\t{:16x} {}+0x{offset:x} ({})", function.base + offset, function.name, function.module)?;
        }
        if !long && key % 1000 < 750 {
            let broken = if key % 10_000 < 400 { 118 } else { 1 + mix(key) % 10 };
            for line in 0..broken.min(127 - stack.len() as u64 + 1) {
                let seed = if random.chance(800) { key } else { random.next() };
                writeln!(out, "\t{:16x} [unknown] ([unknown])", mix(seed ^ line) >> 17)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn folded(count: usize, parts: usize, prefix: &str) -> io::Result<()> {
    let random = &mut Random(1);
    let program = program(random, false);
    let mut samples = Samples { stacks: vec![], drawn: vec![] };
    let mut weights: Vec<Vec<u32>> = vec![];
    while samples.stacks.len() < count {
        let drawn = samples.draw(&program, random, 400);
        weights.resize(samples.stacks.len(), vec![0; parts]);
        weights[drawn][random.below(parts)] += 1;
    }
    let names: Vec<Vec<&str>> = samples.stacks.iter().map(|stack| {
        let functions = stack[1..].iter().map(|id| &*program.functions[*id as usize].name);
        std::iter::once(&*program.comms[stack[0] as usize]).chain(functions).collect()
    }).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| names[*a].cmp(&names[*b]).then(a.cmp(b)));
    for part in 0..parts {
        let mut out = BufWriter::new(std::fs::File::create(format!("{prefix}{part}"))?);
        for number in order.iter().filter(|number| weights[**number][part] > 0) {
            writeln!(out, "{} {}", names[*number].join(";"), weights[*number][part])?;
        }
        out.flush()?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [kind @ ("fp" | "dwarf"), count] => script(kind == "dwarf", count.parse().unwrap(), &mut out)?,
        ["folded", count, parts, prefix] => folded(count.parse().unwrap(), parts.parse().unwrap(), prefix)?,
        _ => panic!("generate fp|dwarf SAMPLES, or generate folded STACKS PARTS PREFIX"),
    }
    out.flush()
}
