//! Reads a heap that is made for the test, with the layout of Node.js 22.

use std::cell::RefCell;

use super::code::{CodeFunction, CodeKind, find_code};
use super::functions::Described;
use super::heap::{Heap, number};
use super::layout::{CodeOffsets, DeoptimizationIndices, Offsets, Types};
use super::positions::{Encoding, Lines, push_signed};
use super::{FramePosition, Inlined, V8, find_inlined, short_path, shown};
use crate::perf::runtimes::functions::frame_name;
use crate::perf::runtimes::hash::{NO_TEXT, hash_length, hash_text, mix};
use crate::perf::runtimes::interpreter::{Interpreter as _, Memory, ScriptFrame};

const SHARED: u32 = 274;
const SCRIPT: u32 = 167;
const SCOPE: u32 = 272;
const BYTECODES: u32 = 205;
const CODE: u32 = 206;
const INSTRUCTIONS: u32 = 210;
const ARRAY: u32 = 174;
/// The types of strings.
const ONE_BYTE: u32 = 8;
const TWO_BYTE: u32 = 0;
const JOINED: u32 = 1;
const SLICED: u32 = 3 + 8;
const THIN: u32 = 5;
const EXTERNAL: u32 = 2 + 8;

const OFFSETS: Offsets = Offsets {
    shared: 32,
    data: 8,
    name: 16,
    script: 32,
    literal: 52,
    locals: 32,
    bytecode: 64,
    bytecode_positions: 24,
    encoding: Encoding::Sign,
    code: CodeOffsets {
        header: 32,
        is_separate: true,
        start: 40,
        size: 52,
        flags: 48,
        deoptimization: 8,
        positions: 16,
        regular_expression: 3,
        baseline: 10,
        optimized: [11, 12],
    },
    deoptimization: DeoptimizationIndices { literals: 2, shared: 6, inlining: 7, is_wrapped: false },
    types: Types {
        shared: SHARED,
        script: SCRIPT,
        scope: SCOPE,
        bytecode: BYTECODES,
        code: CODE,
        instructions: Some(INSTRUCTIONS),
        fixed_array: ARRAY,
        first_non_string: 128,
    },
};

/// The address at which the heap of a test begins.
const START: u64 = 0x10_0000;

thread_local! {
    static HEAP: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn read(_: u32, address: u64, buffer: &mut [u8]) -> usize {
    HEAP.with_borrow(|heap| {
        let Some(at) = address.checked_sub(START) else { return 0 };
        let found = heap.get(at as usize..).unwrap_or_default();
        let length = found.len().min(buffer.len());
        buffer[..length].copy_from_slice(&found[..length]);
        length
    })
}

fn heap() -> Heap<'static> {
    Heap { memory: Memory { pid: 1, read }, offsets: &OFFSETS }
}

/// Adds bytes at a multiple of 32, and returns their address.
fn add(bytes: &[u8]) -> u64 {
    HEAP.with_borrow_mut(|heap| {
        heap.resize(heap.len().next_multiple_of(32), 0);
        let address = START + heap.len() as u64;
        heap.extend_from_slice(bytes);
        heap.extend_from_slice(&[0; 32]);
        address
    })
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Adds an object: a map of its type, and what follows the map.
fn object(kind: u32, content: &[u8]) -> u64 {
    let map = add(&words(&[0, u64::from(kind) << 32])) + 1;
    add(&[&map.to_le_bytes(), content].concat()) + 1
}

fn smi(value: u32) -> u64 {
    u64::from(value) << 32
}

fn string(kind: u32, length: usize, content: &[u8]) -> u64 {
    object(kind, &[&words(&[smi(length as u32)]), content].concat())
}

fn text(text: &str) -> u64 {
    string(ONE_BYTE, text.len(), text.as_bytes())
}

fn array(elements: &[u64]) -> u64 {
    object(ARRAY, &words(&[&[smi(elements.len() as u32)], elements].concat()))
}

fn bytes(content: &[u8]) -> u64 {
    object(ARRAY, &[&words(&[smi(content.len() as u32)]), content].concat())
}

fn script(source: u64, name: u64) -> u64 {
    object(SCRIPT, &words(&[source, name, smi(0), smi(0), 0, 0, smi(0)]))
}

fn shared(data: u64, name: u64, script: u64, literal: u32) -> u64 {
    object(SHARED, &words(&[data, name, 0, script, 0, smi(literal)]))
}

fn scope(locals: &[u64], rest: &[u64]) -> u64 {
    let infos = vec![smi(7); locals.len()];
    object(SCOPE, &words(&[&[smi(1), smi(0), smi(locals.len() as u32)], locals, &infos, rest].concat()))
}

fn read_text(string: u64) -> String {
    String::from_utf8(heap().text(string, 1000).unwrap()).unwrap()
}

#[test]
fn reads_strings_of_all_kinds() {
    let one = text("hello, ");
    let wide: Vec<u8> = "wörld→".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let two = string(TWO_BYTE, 6, &wide);
    let joined = string(JOINED, 13, &words(&[one, two]));
    assert_eq!(read_text(joined), "hello, wörld→");
    assert_eq!(read_text(string(SLICED, 3, &words(&[one, smi(2)]))), "llo");
    assert_eq!(read_text(string(SLICED, 5, &words(&[joined, smi(5)]))), ", wör");
    assert_eq!(read_text(string(THIN, 13, &words(&[joined]))), "hello, wörld→");
    let characters = add(b"external");
    assert_eq!(read_text(string(EXTERNAL, 8, &words(&[0, characters]))), "external");
    assert_eq!(read_text(string(ONE_BYTE, 2, b"\xe9a")), "éa");
    // What is longer than allowed, and a string that contains itself.
    assert_eq!(heap().text(joined, 12), None);
    assert_eq!(heap().text(START + 1, 10), None);
    assert_eq!(number(1), None);
}

#[test]
fn finds_the_name_of_a_function() {
    let file = text("/srv/a.js");
    let script = script(text("x"), file);
    let named = |name| {
        let shared = shared(0, name, script, 3);
        let described = Described::read(heap(), shared).unwrap();
        String::from_utf8([described.name(heap()).unwrap(), b" ".to_vec(), described.file(heap()).unwrap()].concat())
            .unwrap()
    };
    assert_eq!(named(text("f")), "f /srv/a.js");
    assert_eq!(named(smi(5)), " /srv/a.js");
    // Names of variables are none of the function. An empty name is followed by what the parser inferred.
    let (a, b) = (text("a"), text("b"));
    assert_eq!(named(scope(&[a, b], &[text("g"), smi(1), smi(10)])), "g /srv/a.js");
    assert_eq!(named(scope(&[a, b], &[text(""), smi(1), text("x.g"), smi(10)])), "x.g /srv/a.js");
    assert_eq!(named(scope(&[], &[smi(1), smi(10), smi(20), smi(30)])), " /srv/a.js");
    // The names of many variables are in a table.
    let many = object(SCOPE, &words(&[&[smi(1), smi(0), smi(80), 0], &vec![smi(7); 80][..], &[text("h")]].concat()));
    assert_eq!(named(many), "h /srv/a.js");
}

/// True if the function has this hash.
fn has_hash(shared: u64, hash: u64) -> bool {
    Described::read(heap(), shared).unwrap().has_hash(heap(), hash)
}

#[test]
fn believes_a_function_only_with_its_hash() {
    let (name, file) = (text("f"), text("/srv/a.js"));
    let [name_hash, file_hash] =
        [(name, 1), (file, 9)].map(|(string, length)| hash_text(heap().memory, string - 1 + 16, length).unwrap());
    let hash = mix(mix(mix(3, 1), name_hash), file_hash);
    let script = script(text("x"), file);
    assert!(has_hash(shared(0, name, script, 3), hash));
    assert!(!has_hash(shared(0, name, script, 4), hash));
    assert!(!has_hash(shared(0, text("g"), script, 3), hash));
    // A string that was in two pieces when the BPF program met it.
    let joined = string(JOINED | 8, 2, &words(&[name, text("g")]));
    let hash = mix(mix(mix(3, 1), hash_length(2)), file_hash);
    assert!(has_hash(shared(0, joined, script, 3), hash));
    assert!(has_hash(shared(0, text("fg"), script, 3), hash));
    // A function of V8.
    let builtin = Described::read(heap(), shared(smi(7), name, smi(0), 3));
    assert!(builtin.is_none(), "a number is no object");
    let builtin = Described::read(heap(), shared(smi(7), name, array(&[]), 9)).unwrap();
    let hash = mix(mix(mix(0, 1), name_hash), NO_TEXT);
    assert!(builtin.has_hash(heap(), hash));
}

/// Adds optimized code of `compiled` with these deoptimization data and positions. Returns the address of its start.
fn code(deoptimization: u64, positions: u64, size: u32) -> u64 {
    let code = object(CODE, &words(&[deoptimization, positions, 0, 0, 0, smi(size) | 12]));
    let map = add(&words(&[0, u64::from(INSTRUCTIONS) << 32])) + 1;
    let instructions = add(&words(&[map, code, 0, 0]));
    let start = instructions + 32;
    add(&vec![0x90; size as usize]);
    let at = (code - 1 + 40 - START) as usize;
    HEAP.with_borrow_mut(|heap| heap[at..at + 8].copy_from_slice(&start.to_le_bytes()));
    start
}

/// Writes positions: offsets in code, and positions.
fn positions(entries: &[(i64, u64)]) -> u64 {
    let mut table = Vec::new();
    let (mut offset, mut position) = (-1, 0);
    for (next, value) in entries {
        push_signed(&mut table, next - offset);
        push_signed(&mut table, value.cast_signed() - position);
        (offset, position) = (*next, value.cast_signed());
    }
    bytes(&table)
}

/// Encodes a position in an inlined call.
fn at(offset: u64, inlining: u64) -> u64 {
    inlining << 31 | (offset + 1) << 1
}

fn function_at(shared: u64, position: u32) -> CodeFunction {
    CodeFunction { shared, position: Some(position) }
}

#[test]
fn finds_the_functions_that_were_inlined() {
    let script = script(text("a\nbb\nccc\n"), text("/srv/node_modules/m/a.js"));
    let [outer, middle, inner] = [1, 2, 3].map(|literal| shared(0, text(&format!("f{literal}")), script, literal));
    // `middle` is inlined into `outer`, and `inner` into `middle`.
    let calls = bytes(&words(&[at(3, 0), 0, at(6, 1), 1]));
    let literals = array(&[middle | 2, inner]);
    let data = array(&[smi(0), smi(2), literals, 0, 0, 0, outer, calls]);
    let start = code(data, positions(&[(0, at(0, 0)), (40, at(2, 2)), (80, at(1, 0))]), 5000);
    let found = find_code(heap(), start + 4500).unwrap();
    assert_eq!((found.start, found.kind), (start, CodeKind::Optimized { has_lines: true }));
    assert_eq!(find_code(heap(), start + 5000), None);
    let functions = |offset| found.functions_at(heap(), offset).unwrap();
    assert_eq!(functions(39), [function_at(outer, 0)]);
    assert_eq!(functions(40), [function_at(inner, 2), function_at(middle, 6), function_at(outer, 3)]);
    assert_eq!(functions(4000), [function_at(outer, 1)]);

    let v8 = V8::new(OFFSETS);
    let lines = [2, 6, 8].map(|offset| v8.find_line(heap(), script, offset).unwrap());
    assert_eq!(lines, [2, 3, 3]);
    let function = Described::read(heap(), inner).unwrap().function(heap()).unwrap();
    assert_eq!(frame_name(&shown(&function), Some(2), b"v8"), b"f3 (m/a.js:2)");
    assert_eq!(Lines::read(heap(), script).unwrap().find(100), None);
}

/// Returns the position of an address in code that consists of `nop`.
fn in_code(pc: u64, is_exact: bool) -> FramePosition {
    let nops = u64::from_le_bytes([0x90; 8]);
    FramePosition::Code { pc, is_exact, hash: [nops, nops].into_iter().fold(0, mix) & 0x3fff }
}

/// Puts another function in the place of the one that code was compiled from.
fn replace_compiled(data: u64, shared: u64) {
    let at = (data - 1 + 16 + 8 * 6 - START) as usize;
    HEAP.with_borrow_mut(|heap| heap[at..at + 8].copy_from_slice(&shared.to_le_bytes()));
}

#[test]
fn what_was_inlined_is_unknown_if_other_code_is_there() {
    let script = script(text("x"), text("/srv/a.js"));
    let [outer, inner, other] = [1, 2, 3].map(|literal| shared(0, text(&format!("f{literal}")), script, literal));
    let calls = bytes(&words(&[at(3, 0), 0]));
    let data = array(&[smi(0), smi(1), array(&[inner]), 0, 0, 0, outer, calls]);
    let start = code(data, positions(&[(0, at(0, 0)), (100, at(2, 1))]), 5000);
    let inlined = |offset, is_exact| find_inlined(heap(), in_code(start + offset, is_exact), outer, is_exact);
    let names = |offset, is_exact| {
        let (v8, position) = (V8::new(OFFSETS), in_code(start + offset, is_exact));
        let frames = v8.name_inlined(heap(), position, outer, inlined(offset, is_exact), false);
        let names = frames.into_iter().map(|frame| String::from_utf8(frame.name).unwrap());
        names.collect::<Vec<String>>().join(" ")
    };
    assert_eq!(inlined(60, true), Inlined::Known(vec![function_at(outer, 0)]));
    assert_eq!(inlined(4000, false), Inlined::Known(vec![function_at(inner, 2), function_at(outer, 3)]));
    assert_eq!([names(60, true), names(4000, false)], ["", "f2 (/srv/a.js)"]);
    // Other instructions, and no code.
    let FramePosition::Code { pc, hash, .. } = in_code(start + 4000, false) else { unreachable!() };
    let changed = FramePosition::Code { pc, is_exact: false, hash: hash ^ 1 };
    assert_eq!(find_inlined(heap(), changed, outer, false), Inlined::Unknown);
    assert_eq!(find_inlined(heap(), in_code(START, false), outer, false), Inlined::Unknown);

    // Code that is never thrown away tells no functions.
    let bare = code(array(&[]), positions(&[(0, at(0, 0)), (100, at(2, 1))]), 5000);
    let inlined_in_bare = |offset| find_inlined(heap(), in_code(bare + offset, false), outer, false);
    assert_eq!(inlined_in_bare(60), Inlined::Known(Vec::new()));
    assert_eq!(inlined_in_bare(4000), Inlined::Unknown);

    replace_compiled(data, other);
    assert_eq!(inlined(4000, false), Inlined::Unknown);
    assert_eq!(inlined(4000, true), Inlined::Unknown);
    assert_eq!(names(4000, true), "[v8]");
    // At the start of code, the frame is that of the caller.
    assert_eq!(inlined(60, true), Inlined::Called(function_at(other, 0)));
    assert_eq!(names(60, true), "f3 (/srv/a.js) [v8]");
}

fn position(instruction: u32, first_line: u32) -> FramePosition {
    let instruction = instruction.cast_signed();
    FramePosition::of(ScriptFrame { code: 0, instruction, first_line, hash: 0, is_outermost: false, native: 0 })
}

#[test]
fn a_frame_says_its_position() {
    assert_eq!(position(0, 5), FramePosition::Unknown);
    assert_eq!(position(1 << 16, 70), FramePosition::Bytecode(70));
    let code = FramePosition::Code { pc: 0x7fff_0000_1234, is_exact: true, hash: 0x3ffe };
    assert_eq!(position(0x3ffe << 18 | 3 << 16 | 0x7fff, 0x1234), code);
}

#[test]
fn shows_paths_from_where_modules_are_searched_for() {
    for (path, short) in [
        ("file:///srv/a.mjs", "/srv/a.mjs"),
        ("/srv/node_modules/express/lib/application.js", "express/lib/application.js"),
        ("/srv/node_modules/a/node_modules/@b/c/d.js", "@b/c/d.js"),
        ("node:internal/timers", "node:internal/timers"),
    ] {
        assert_eq!(short_path(path.as_bytes()), short.as_bytes());
    }
    assert!(V8::new(OFFSETS).generates_code());
}
