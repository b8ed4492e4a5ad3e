//! Benchmarks of the inner loops: interners, readers, sorting, layout and unwinding.
//!
//! `cargo bench` runs all, `cargo bench -- NAME` those whose name contains NAME. Compare with the last run on a quiet
//! machine; `scripts/bench*` compare whole programs with their peers.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fgkit::collapse::{self, collapse};
use fgkit::diagnostics::Diagnostics;
use fgkit::folded;
use fgkit::input::{Blocks, Source};
use fgkit::profile::{FrameId, Frames, Profile, Stacks, Weight, Weights};
use fgkit::svg::{self, Drawing};
use rustc_hash::FxBuildHasher;

/// Number of distinct functions and stacks, and of samples, in generated profiles.
const FUNCTIONS: u64 = 5_000;
const STACKS: u64 = 30_000;
const SAMPLES: u64 = 200_000;

/// The xorshift64* random number generator: the same profile on every machine.
struct Random(u64);

impl Random {
    fn next_below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

fn function_name(function: u64) -> String {
    const MODULES: [&str; 6] = ["tokio::runtime::scheduler", "std::io", "ns::vector<int>", "tcp", "ext4", "alloc"];
    format!("{}::function_{function}", MODULES[(function % 6) as usize])
}

/// Returns distinct stacks that share prefixes, as call trees do.
fn generate_stacks() -> Vec<Vec<u32>> {
    let mut random = Random(0x5eed);
    let mut stacks: Vec<Vec<u32>> = vec![vec![0]];
    for _ in 1..STACKS {
        let mut stack = stacks[random.next_below(stacks.len() as u64) as usize].clone();
        stack.truncate(60);
        stack.extend((0..=random.next_below(3)).map(|_| random.next_below(FUNCTIONS) as u32));
        stacks.push(stack);
    }
    stacks
}

/// Returns the number of the stack of each sample: few stacks have most samples.
fn generate_samples() -> Vec<usize> {
    let mut random = Random(0xfade);
    (0..SAMPLES).map(|_| random.next_below(1 + random.0 % STACKS) as usize).collect()
}

fn generate_folded(stacks: &[Vec<u32>]) -> String {
    let mut text = String::new();
    for stack in stacks {
        let names: Vec<String> = stack.iter().map(|function| function_name((*function).into())).collect();
        writeln!(text, "{} {}", names.join(";"), stack.len()).unwrap();
    }
    text
}

fn generate_perf_script(stacks: &[Vec<u32>], samples: &[usize]) -> String {
    let mut text = String::new();
    for (number, sample) in samples.iter().take(50_000).enumerate() {
        writeln!(text, "app  1234/1234  [000]  {}.{:06}:  1003009 cpu-clock: ", number / 997, number % 997 * 1003)
            .unwrap();
        for function in stacks[*sample].iter().rev() {
            let address = 0x0055_d0c0_0000 + u64::from(*function) * 64;
            writeln!(text, "\t    {address:x} {}+0x1c (/usr/bin/app)", function_name((*function).into())).unwrap();
        }
        text.push('\n');
    }
    text
}

fn generate_profile(stacks: &[Vec<u32>], samples: &[usize]) -> Profile {
    let mut profile = Profile::new(false);
    let ids: Vec<FrameId> = (0..FUNCTIONS).map(|n| profile.frames.intern(function_name(n).as_bytes())).collect();
    for sample in samples {
        let stack: Vec<FrameId> = stacks[*sample].iter().map(|function| ids[*function as usize]).collect();
        profile.add(&stack, Weights::plain(Weight::ONE)).unwrap();
    }
    profile
}

fn bench_interners(criterion: &mut Criterion) {
    let (stacks, samples) = (generate_stacks(), generate_samples());
    let names: Vec<String> = stacks.iter().flatten().map(|function| function_name((*function).into())).collect();
    let mut group = criterion.benchmark_group("intern");
    group.throughput(Throughput::Elements(names.len() as u64));
    group.bench_function("frames", |bench| {
        bench.iter(|| {
            let mut frames = Frames::new();
            for name in &names {
                black_box(frames.intern(name.as_bytes()));
            }
            frames.len()
        });
    });
    group.bench_function("frames with hashbrown", |bench| {
        bench.iter(|| {
            let mut frames = hashbrown::HashMap::<Vec<u8>, u32, FxBuildHasher>::default();
            for name in &names {
                let next = frames.len() as u32;
                black_box(*frames.entry_ref(name.as_bytes()).or_insert(next));
            }
            frames.len()
        });
    });
    group.throughput(Throughput::Elements(SAMPLES));
    group.bench_function("stacks", |bench| {
        bench.iter(|| {
            let mut interned = Stacks::default();
            for sample in &samples {
                black_box(interned.intern(&stacks[*sample]));
            }
            interned.len()
        });
    });
    group.bench_function("stacks with hashbrown", |bench| {
        bench.iter(|| {
            let mut interned = hashbrown::HashMap::<Vec<u32>, u32, FxBuildHasher>::default();
            for sample in &samples {
                let next = interned.len() as u32;
                black_box(*interned.entry_ref(&stacks[*sample][..]).or_insert(next));
            }
            interned.len()
        });
    });
    group.finish();
}

fn bench_readers(criterion: &mut Criterion) {
    let (stacks, samples) = (generate_stacks(), generate_samples());
    let text = generate_folded(&stacks);
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("folded", |bench| {
        bench.iter_batched(
            || Blocks::new("folded".to_owned(), Box::new(std::io::Cursor::new(text.clone()))).unwrap(),
            |mut input| folded::read_into(Profile::new(false), &mut input, &mut Diagnostics::silent()).unwrap().len(),
            BatchSize::LargeInput,
        );
    });
    let text = generate_perf_script(&stacks, &samples);
    let file = write_temporary(text.as_bytes());
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("perf script, one thread", |bench| {
        let options = collapse::Options { threads: Some(std::num::NonZeroUsize::MIN), ..Default::default() };
        bench.iter(|| collapse_file(file.path(), &options));
    });
    group.finish();
}

fn bench_sort_and_layout(criterion: &mut Criterion) {
    let profile = generate_profile(&generate_stacks(), &generate_samples());
    criterion.bench_function("sort/profile", |bench| {
        bench.iter(|| {
            let mut stacks = 0;
            profile
                .for_each_sorted::<()>(|_| {
                    stacks += 1;
                    Ok(())
                })
                .unwrap();
            stacks
        });
    });
    for (name, plain) in [("layout/plain", true), ("layout/with profile for the viewer", false)] {
        let options = svg::Options { plain, ..svg::Options::default() };
        criterion.bench_function(name, |bench| {
            bench.iter(|| Drawing::from_profile(&profile, &options).unwrap().layout.frames.len())
        });
    }
}

/// Measures a perf.data with copied stacks: reading, unwinding, and naming each address once.
fn bench_unwinder(criterion: &mut Criterion) {
    let Some(data) = record_copied_stacks() else {
        let _ = writeln!(std::io::stderr(), "unwind: skipped: perf cannot record here");
        return;
    };
    let options = collapse::Options { no_inline: true, ..Default::default() };
    criterion.bench_function("unwind/perf.data", |bench| bench.iter(|| collapse_file(&data, &options)));
}

/// Records a short program with `perf record --call-graph dwarf`.
fn record_copied_stacks() -> Option<PathBuf> {
    let data = std::env::temp_dir().join(format!("fg-bench-{}.data", std::process::id()));
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-F", "4999", "--call-graph", "dwarf,16384", "-o"]).arg(&data);
    perf.args(["--", "cargo", "metadata", "--offline", "--format-version", "1"]);
    let status = perf.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    status.success().then_some(data)
}

fn collapse_file(path: &Path, options: &collapse::Options) -> usize {
    collapse(&[Source::File(path.to_owned())], options, &mut Diagnostics::silent()).unwrap().len()
}

fn write_temporary(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    file
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(4));
    targets = bench_interners, bench_readers, bench_sort_and_layout, bench_unwinder
}
criterion_main!(benches);
