//! HotSpot, the virtual machine of OpenJDK.
//!
//! Methods are interpreted, or compiled while they run. The BPF program steps through both kinds of frames by what HotSpot
//! says of its structures (`record/bpf/hotspot.bpf.h`), and sends the method or the compiled code of each frame. Here they are
//! named, and the methods are found that the compiler has inlined.

mod compressed;
mod inlining;
mod layout;
mod methods;
mod next_rows;
mod vm_structs;

use std::sync::{Arc, OnceLock};

use self::inlining::find_activations;
use self::layout::HotSpotLayout;
use self::methods::{MethodReader, frame_name};
use self::vm_structs::{TablePlaces, VmStructs, read_c_string};
use super::hash::{hash_bytes, mix};
use super::interpreter::{
    Function, GeneratedFrame, Interpreter, InterpreterFile, Layout, Library, Memory, Recognition, ScriptFrame,
};
use crate::markers;

/// A symbol by which the library is found.
pub(super) const MARKER: &[u8] = b"gHotSpotVMStructs";

/// The kinds of frames, as in the BPF program.
const INTERPRETED: u32 = 1;
const COMPILED: u32 = 2;
const NATIVE_METHOD: u32 = 3;
const CALL_STUB: u32 = 5;
const UNPACKED: u32 = 6;

/// The start of the name of the stubs that freeze and thaw the frames of virtual threads.
const CONTINUATION_STUBS: &[u8] = b"StubRoutines (continuation";

/// The longest name of a stub.
const MAX_STUB_NAME: usize = 64;

/// A HotSpot virtual machine.
#[derive(Debug)]
struct HotSpot {
    places: TablePlaces,
    layout: OnceLock<HotSpotLayout>,
}

/// Recognizes HotSpot in an ELF file: `libjvm.so`.
pub(super) fn recognize(file: &InterpreterFile<'_>) -> Recognition {
    match TablePlaces::find(file) {
        Some(places) => Recognition::Found(Arc::new(HotSpot { places, layout: OnceLock::new() })),
        None => Recognition::None,
    }
}

impl HotSpot {
    fn find_layout(&self, library: Library<'_>) -> Option<&HotSpotLayout> {
        if let Some(layout) = self.layout.get() {
            return Some(layout);
        }
        let vm = VmStructs::read(self.places, library.bias, library.memory)?;
        let layout = HotSpotLayout::find(&vm, library.bias, library.memory)?;
        Some(self.layout.get_or_init(|| layout))
    }
}

impl Interpreter for HotSpot {
    fn layout(&self, library: Library<'_>) -> Option<&Layout> {
        self.find_layout(library).map(|layout| &layout.layout)
    }

    fn generates_code(&self) -> bool {
        true
    }

    fn unnamed_frame(&self) -> &'static [u8] {
        markers::JAVA
    }

    fn read_generated(
        &self,
        library: Library<'_>,
        frame: ScriptFrame,
        sent: Option<&Function>,
        with_lines: bool,
    ) -> Option<Vec<GeneratedFrame>> {
        let Library { bias, memory, .. } = library;
        let reader = FrameReader { layout: self.find_layout(library)?, bias, memory, frame, with_lines };
        match frame.first_line {
            INTERPRETED | COMPILED | NATIVE_METHOD => reader
                .read_methods()
                // The method is gone, or another one is there: what the program sent was read at the sample.
                .or_else(|| Some(without_debug_information(frame_name(sent?, None), frame.first_line))),
            CALL_STUB => Some(Vec::new()),
            UNPACKED => Some(GeneratedFrame::without_inlined(markers::JAVA.to_vec())),
            // A frame that was called by this stub has callers that are not on the stack.
            _ if frame.instruction != 0 && reader.read_stub_name()?.starts_with(CONTINUATION_STUBS) => {
                Some(GeneratedFrame::without_inlined(markers::FROZEN.to_vec()))
            }
            _ => Some(GeneratedFrame::without_inlined(reader.read_stub_name()?)),
        }
    }
}

/// Returns the frames of a method whose code is gone. Nobody knows any more which methods a compiler has inlined there.
fn without_debug_information(name: Vec<u8>, kind: u32) -> Vec<GeneratedFrame> {
    let method = GeneratedFrame { name, is_inlined: false };
    match kind {
        COMPILED => vec![GeneratedFrame { name: markers::JAVA.to_vec(), is_inlined: true }, method],
        _ => vec![method],
    }
}

/// Reads what belongs to a frame.
struct FrameReader<'a> {
    layout: &'a HotSpotLayout,
    bias: u64,
    memory: Memory,
    frame: ScriptFrame,
    with_lines: bool,
}

impl FrameReader<'_> {
    fn methods(&self) -> MethodReader<'_> {
        MethodReader::new(self.layout, self.memory)
    }

    /// Returns the frames of a method and of those that were inlined. `None` if the process has another method there by now.
    fn read_methods(&self) -> Option<Vec<GeneratedFrame>> {
        let (code, kind) = (self.frame.code, self.frame.first_line);
        let is_interpreted = kind == INTERPRETED;
        let method = if is_interpreted { code } else { self.blob_word(self.layout.code.method)? };
        if self.hash(method)? != self.frame.hash {
            return None;
        }
        let mut activations = vec![(method, if is_interpreted { self.frame.instruction } else { -1 })];
        if kind == COMPILED {
            // The outermost one is the method itself. There are none in code that no bytecode was compiled to.
            let (places, has_all_rows) = (&self.layout.debug, self.has_all_rows());
            let found = find_activations(places, self.memory, code, self.frame.instruction, has_all_rows)?;
            if !found.is_empty() {
                activations = Some(found).filter(|found| found.last().is_some_and(|(last, _)| *last == method))?;
            }
        }
        let outermost = activations.len() - 1;
        let frames = activations.iter().enumerate().map(|(index, (method, bytecode))| {
            let function = self.methods().read_name(*method)?;
            let line = if self.with_lines { self.methods().find_line(*method, (*bytecode).max(0)) } else { None };
            Some(GeneratedFrame { name: frame_name(&function, line), is_inlined: index < outermost })
        });
        let frames = frames.collect::<Option<Vec<GeneratedFrame>>>();
        // Nothing changed meanwhile.
        frames.filter(|_| self.hash(method) == Some(self.frame.hash))
    }

    /// Returns the hash of a method in the frame, as the BPF program makes it.
    fn hash(&self, method: u64) -> Option<u64> {
        let is_interpreted = self.frame.first_line == INTERPRETED;
        let id = if is_interpreted { 0 } else { self.blob_word(self.layout.code.compile_id)? & u64::from(u32::MAX) };
        let (const_method, function) = (self.methods().const_method(method)?, self.methods().read_name(method)?);
        let texts = [hash_bytes(&function.name), hash_bytes(&function.class)];
        Some([self.frame.code, method, const_method, id].into_iter().chain(texts).fold(0, mix))
    }

    fn blob_word(&self, offset: u64) -> Option<u64> {
        self.memory.field(self.frame.code, offset)
    }

    /// True if the compilers leave rows of all instructions in the process.
    fn has_all_rows(&self) -> bool {
        let address = self.layout.all_rows_option.map(|option| self.bias.wrapping_add(option));
        address.and_then(|address| self.memory.bytes(address, 1)).is_some_and(|value| value == [1])
    }

    fn read_stub_name(&self) -> Option<Vec<u8>> {
        let name = read_c_string(self.memory, self.blob_word(self.layout.code.name)?, MAX_STUB_NAME)?;
        let is_text = !name.is_empty() && name.iter().all(|byte| matches!(byte, b' '..=b'~'));
        is_text.then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, GeneratedFrame, INTERPRETED, NATIVE_METHOD, without_debug_information};

    #[test]
    fn what_was_inlined_is_unknown_when_the_code_is_gone() {
        let names = |kind| {
            let frames: Vec<GeneratedFrame> = without_debug_information(b"A.f".to_vec(), kind);
            frames
                .into_iter()
                .map(|frame| (String::from_utf8(frame.name).unwrap(), frame.is_inlined))
                .collect::<Vec<_>>()
        };
        let method = || ("A.f".to_owned(), false);
        assert_eq!(names(COMPILED), [("[java]".to_owned(), true), method()]);
        assert_eq!(names(INTERPRETED), [method()]);
        assert_eq!(names(NATIVE_METHOD), [method()]);
    }
}
