//! A program to profile: threads, a forked child, deep recursion and inlined functions, busy for some seconds.
//!
//! `workload [SECONDS]`, by default 2. Its stacks are known: `main` and the named threads are roots, `digest` is nearly always
//! the leaf with `mix` inlined into it, `descend` is 100 frames deep in the main thread, and `crunch_in_child` runs in a
//! process of its own.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Depth of the recursion in the main thread: less than the 127 frames that the kernel walks by frame pointers.
const DEPTH: u32 = 100;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(2.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    // Fork before threads start: a forked process has only the thread that forked.
    let child = fork_child(end);
    let threads = [("parser", parse as fn(Instant) -> u64), ("sorter", sort)]
        .map(|(name, work)| thread::Builder::new().name(name.to_owned()).spawn(move || work(end)));
    let mut sum = recurse(end);
    for thread in threads.into_iter().flatten() {
        sum ^= thread.join().unwrap_or(0);
    }
    wait_for_child(child);
    println!("workload: done ({sum:016x})");
}

/// Recurses as deep as an interpreter or a tree walk.
#[inline(never)]
fn recurse(end: Instant) -> u64 {
    let mut sum = 0;
    while Instant::now() < end {
        sum ^= descend(DEPTH, sum);
    }
    sum
}

#[inline(never)]
fn descend(depth: u32, seed: u64) -> u64 {
    match depth {
        0 => digest(seed, 20_000),
        _ => black_box(descend(depth - 1, seed ^ u64::from(depth))) ^ 1,
    }
}

/// Parses text by recursive descent in a thread.
#[inline(never)]
fn parse(end: Instant) -> u64 {
    let text = format!("{}1{}", "(2+".repeat(30), ")".repeat(30));
    let mut sum = 0;
    while Instant::now() < end {
        sum ^= parse_term(&mut black_box(&text).bytes());
    }
    sum
}

#[inline(never)]
fn parse_term(text: &mut std::str::Bytes<'_>) -> u64 {
    match text.next() {
        Some(b'(') => {
            let left = parse_term(text);
            let _plus = text.next();
            let right = parse_term(text);
            let _closed = text.next();
            digest(left ^ right.rotate_left(1), 100)
        }
        Some(digit) => u64::from(digit - b'0'),
        None => 0,
    }
}

/// Sorts with the standard library in a thread.
#[inline(never)]
fn sort(end: Instant) -> u64 {
    let mut sum = 0;
    while Instant::now() < end {
        let mut numbers: Vec<u64> = (0..20_000).map(|number| digest(number ^ sum, 1)).collect();
        numbers.sort_unstable();
        sum ^= numbers[numbers.len() / 2];
    }
    sum
}

/// Loops over two levels of inlined functions; the leaf of most stacks.
#[inline(never)]
fn digest(seed: u64, rounds: u32) -> u64 {
    (0..rounds).fold(seed, |state, round| mix(state, u64::from(round)))
}

#[inline(always)]
fn mix(state: u64, input: u64) -> u64 {
    rotate_and_multiply(state ^ input)
}

#[inline(always)]
fn rotate_and_multiply(state: u64) -> u64 {
    black_box(state.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(never)]
fn crunch_in_child(end: Instant) -> u64 {
    let mut sum = 0;
    while Instant::now() < end {
        sum = digest(sum, 50_000);
    }
    sum
}

#[cfg(unix)]
fn fork_child(end: Instant) -> i32 {
    #[allow(unsafe_code)]
    // SAFETY: there is one thread, so the child's memory is whole; it ends by `_exit` and runs nothing of the parent's.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            black_box(crunch_in_child(end));
            libc::_exit(0);
        }
        child
    }
}

#[cfg(unix)]
fn wait_for_child(child: i32) {
    #[allow(unsafe_code)]
    // SAFETY: no status is asked for, so nothing is written.
    unsafe {
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

#[cfg(not(unix))]
fn fork_child(end: Instant) -> thread::JoinHandle<u64> {
    thread::spawn(move || crunch_in_child(end))
}

#[cfg(not(unix))]
fn wait_for_child(child: thread::JoinHandle<u64>) {
    black_box(child.join().unwrap_or(0));
}
