//! The script functions of a recording, and the frames that are made of them.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::interpreter::{Function, Interpreter, Library, Memory, ScriptFrame, SentName};
use crate::perf::symbols::frame::NamedFrame;

/// The distinct script frames of a recording, by number.
#[derive(Clone, Debug, Default)]
pub struct ScriptFrames {
    frames: Vec<NamedFrame>,
    numbers: FxHashMap<Vec<u8>, u32>,
}

impl ScriptFrames {
    /// Returns a frame by its number.
    pub fn get(&self, number: u64) -> Option<&NamedFrame> {
        self.frames.get(usize::try_from(number).ok()?)
    }

    fn intern(&mut self, name: Vec<u8>, has_name: bool) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.frames.len()).expect("fewer than 2^32 frames");
        self.numbers.insert(name.clone(), number);
        self.frames.push(NamedFrame::from_script(name, has_name));
        number
    }
}

/// Maximum number of functions that are remembered. Programs that make functions all the time have more: all are forgotten
/// then, and read again.
const MAX_FUNCTIONS: usize = 1 << 19;

/// A function's address and the hash of its name.
type FunctionKey = (u64, u64);

/// The functions that were read from processes.
///
/// A function has the same address in a process and its copies, and the hash tells functions apart that were at the same
/// address one after the other. So functions of all processes are in one table.
#[derive(Debug, Default)]
pub struct Functions {
    functions: FxHashMap<FunctionKey, Function>,
    /// The names that the BPF program sent, by their hashes.
    sent: FxHashMap<u64, SentFunction>,
    /// The number of the frame of each function, and of each instruction if lines are wanted.
    frames: FxHashMap<(FunctionKey, i32), u32>,
    /// The numbers of the frames of each instruction of generated code, innermost first.
    generated: FxHashMap<(FunctionKey, i32, u32), Arc<[u32]>>,
}

impl Functions {
    /// Returns the number of a frame in `names`. Reads the function if it is new.
    pub fn find_frame(
        &mut self,
        frame: ScriptFrame,
        interpreter: &dyn Interpreter,
        memory: Memory,
        with_lines: bool,
        names: &mut ScriptFrames,
    ) -> u32 {
        let function = (frame.code, frame.hash);
        let key = (function, if with_lines { frame.instruction } else { 0 });
        if let Some(number) = self.frames.get(&key) {
            return *number;
        }
        self.limit_size();
        let function = match self.functions.entry(function) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let read = read_function(frame, interpreter, memory);
                let Some(function) = choose_function(self.sent.get(&frame.hash), read) else {
                    // If the record with its name was lost, the name is sent again.
                    return names.intern(interpreter.unnamed_frame().to_vec(), false);
                };
                new.insert(function)
            }
        };
        let line = if with_lines { interpreter.find_line(function, frame.instruction) } else { None };
        let number = names.intern(frame_name(function, line, interpreter.native_file()), true);
        self.frames.insert(key, number);
        number
    }

    /// Returns the numbers of the frames of generated code in `names`, innermost first. Reads the functions if they are new.
    pub fn find_generated(
        &mut self,
        frame: ScriptFrame,
        interpreter: &dyn Interpreter,
        library: Library<'_>,
        with_lines: bool,
        names: &mut ScriptFrames,
    ) -> Arc<[u32]> {
        let key = ((frame.code, frame.hash), frame.instruction, frame.first_line);
        if let Some(numbers) = self.generated.get(&key) {
            return Arc::clone(numbers);
        }
        self.limit_size();
        let frames = interpreter.read_generated(
            library,
            frame,
            self.sent.get(&frame.hash).map(|sent| &sent.function),
            with_lines,
        );
        let unnamed = interpreter.unnamed_frame();
        // What could not be read may be read the next time. Without a function, other code of the kind may come to the address.
        let is_final =
            frame.code != 0 && frames.as_ref().is_some_and(|frames| frames.iter().all(|frame| frame.name != unnamed));
        let numbers: Arc<[u32]> = match frames {
            Some(frames) => frames.into_iter().map(|frame| names.intern(frame.name, true)).collect(),
            None => [names.intern(unnamed.to_vec(), false)].into(),
        };
        if is_final {
            self.generated.insert(key, Arc::clone(&numbers));
        }
        numbers
    }

    fn limit_size(&mut self) {
        let sizes = [self.functions.len(), self.frames.len(), self.sent.len(), self.generated.len()];
        if sizes.into_iter().max() >= Some(MAX_FUNCTIONS) {
            self.functions.clear();
            self.frames.clear();
            self.sent.clear();
            self.generated.clear();
        }
    }

    /// Remembers a name that the BPF program sent.
    pub fn add_sent_name(&mut self, frame: ScriptFrame, sent: SentName<'_>) {
        let function = Function {
            name: mark_cut(sent.name, sent.is_name_cut),
            class: mark_cut(sent.class, sent.is_class_cut),
            file: mark_cut(sent.file, sent.is_file_cut),
            first_line: frame.first_line,
            lines: None,
        };
        let is_cut = sent.is_name_cut || sent.is_class_cut || sent.is_file_cut;
        self.sent.insert(frame.hash, SentFunction { function, is_cut });
    }

    /// Forgets the numbers of frames: the next ones are of other [`ScriptFrames`].
    pub fn forget_frames(&mut self) {
        self.frames.clear();
        self.generated.clear();
    }
}

/// A function whose name the BPF program sent.
#[derive(Clone, Debug)]
struct SentFunction {
    function: Function,
    /// True if the start of its name, class or file is cut off.
    is_cut: bool,
}

/// Returns the function that was read, which has its lines and whole names, unless another one was sent: the process may have
/// made another function at the address between the two reads of the hash, and the first one again. The name that was sent
/// was read while the process could not run.
fn choose_function(sent: Option<&SentFunction>, read: Option<Function>) -> Option<Function> {
    let Some(sent) = sent else { return read };
    let is_same = |read: &Function| {
        let SentFunction { function, .. } = sent;
        sent.is_cut || [&read.name, &read.class, &read.file] == [&function.name, &function.class, &function.file]
    };
    read.filter(is_same).or_else(|| Some(sent.function.clone()))
}

/// Reads the function of a frame. `None` if the process has another one there by now.
fn read_function(frame: ScriptFrame, interpreter: &dyn Interpreter, memory: Memory) -> Option<Function> {
    // The process may free the function and make another one while its parts are read one after the other.
    check_hash(frame, interpreter, memory)?;
    let function = interpreter.read_function(memory, frame.code)?;
    check_hash(frame, interpreter, memory)?;
    Some(function)
}

/// Returns `None` if the function of a frame is not there any more.
fn check_hash(frame: ScriptFrame, interpreter: &dyn Interpreter, memory: Memory) -> Option<()> {
    (interpreter.hash_function(memory, frame.code)? == frame.hash).then_some(())
}

/// Returns a text, with a mark if its start is cut off.
fn mark_cut(text: &[u8], is_cut: bool) -> Vec<u8> {
    if is_cut { [b"...", text].concat() } else { text.to_vec() }
}

/// Returns `NAME (FILE)`, `NAME (FILE:LINE)` or `CLASS::NAME (FILE)`. `native_file` replaces the file of a function that is
/// written in C.
pub(super) fn frame_name(function: &Function, line: Option<u32>, native_file: &[u8]) -> Vec<u8> {
    let Function { name, class, file, .. } = function;
    let (file, line) = if file.is_empty() { (native_file, None) } else { (short_path(file), line) };
    let name = if name.is_empty() { b"{main}" } else { &name[..] };
    let separator: &[u8] = if class.is_empty() { b"" } else { b"::" };
    let mut name = [class, separator, name, b" (", file].concat();
    if let Some(line) = line {
        name.extend_from_slice(format!(":{line}").as_bytes());
    }
    name.push(b')');
    name
}

/// Returns the path of a file from where the interpreter searches for modules: behind `site-packages`, or the folder of the
/// standard library.
fn short_path(path: &[u8]) -> &[u8] {
    let package = path_below(path, b"/site-packages/").or_else(|| path_below(path, b"/dist-packages/"));
    package.unwrap_or_else(|| {
        let library = path_below(path, b"/lib/python3.").map(|rest| rest.trim_ascii_start());
        let rest = library.and_then(|rest| rest.iter().position(|byte| *byte == b'/').map(|slash| &rest[slash + 1..]));
        rest.filter(|rest| !rest.is_empty()).unwrap_or(path)
    })
}

/// Returns the part of a path below the last folder of a name.
fn path_below<'a>(path: &'a [u8], folder: &[u8]) -> Option<&'a [u8]> {
    memchr::memmem::rfind(path, folder).map(|index| &path[index + folder.len()..])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::interpreter::{GeneratedFrame, Interpreter, Layout, Library, Memory, ScriptFrame, SentName};
    use super::{Function, Functions, ScriptFrames, frame_name, short_path};
    use crate::perf::objects::object::{Bytes, Elf};

    /// An interpreter whose process replaces the function at the address after this number of reads.
    #[derive(Debug)]
    struct Replacing(AtomicU64);

    impl Replacing {
        /// Returns the number of the function that is at the address.
        fn read(&self) -> u64 {
            let left = self.0.load(Ordering::Relaxed);
            self.0.store(left.saturating_sub(1), Ordering::Relaxed);
            u64::from(left == 0)
        }
    }

    impl Interpreter for Replacing {
        fn layout(&self, _: Library) -> Option<&Layout> {
            None
        }

        fn unnamed_frame(&self) -> &'static [u8] {
            b"[unnamed]"
        }

        fn hash_function(&self, _: Memory, _: u64) -> Option<u64> {
            Some(self.read())
        }

        fn read_function(&self, _: Memory, _: u64) -> Option<Function> {
            let name = format!("f{}", self.read()).into_bytes();
            Some(Function { name, class: Vec::new(), file: b"a".to_vec(), first_line: 1, lines: None })
        }

        /// Cannot tell what was inlined as long as the first function is there.
        fn read_generated(
            &self,
            _: Library,
            _: ScriptFrame,
            _: Option<&Function>,
            _: bool,
        ) -> Option<Vec<GeneratedFrame>> {
            let inlined = if self.read() == 0 { self.unnamed_frame().to_vec() } else { b"inner".to_vec() };
            let frames = [(inlined, true), (b"outer".to_vec(), false)];
            Some(frames.map(|(name, is_inlined)| GeneratedFrame { name, is_inlined }).into())
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_not_known_of_generated_code_is_read_again() {
        let bytes = Bytes::Copied(Arc::from(std::fs::read("/bin/true").unwrap()));
        let elf = Elf::parse(b"/bin/true".to_vec(), bytes).unwrap();
        let library = Library { elf: &elf, bias: 0, memory: Memory { pid: 1, read: |_, _, _| 0 } };
        for (code, then) in [(8, "inner"), (0, "[unnamed]")] {
            let frame = ScriptFrame { code, instruction: 0, first_line: 1, hash: 0, is_outermost: false, native: 0 };
            let (interpreter, mut names) = (Replacing(AtomicU64::new(1)), ScriptFrames::default());
            let mut functions = Functions::default();
            let mut find = || {
                let numbers = functions.find_generated(frame, &interpreter, library, false, &mut names);
                names.get(numbers[0].into()).unwrap().name.clone()
            };
            assert_eq!([find(), find()], [b"[unnamed]".to_vec(), b"inner".to_vec()]);
            // What is known stays so, unless only the address tells the code from other code.
            interpreter.0.store(1, Ordering::Relaxed);
            assert_eq!(find(), then.as_bytes());
        }
    }

    #[test]
    fn a_function_has_a_name_from_when_it_is_sent() {
        let frame = ScriptFrame { code: 8, instruction: 0, first_line: 1, hash: 0, is_outermost: false, native: 0 };
        let (interpreter, mut names) = (Replacing(AtomicU64::new(0)), ScriptFrames::default());
        let mut functions = Functions::default();
        let find = |functions: &mut Functions, names: &mut ScriptFrames| {
            let memory = Memory { pid: 1, read: |_, _, _| 0 };
            let number = functions.find_frame(frame, &interpreter, memory, false, names);
            names.get(number.into()).unwrap().name.clone()
        };
        assert_eq!(find(&mut functions, &mut names), b"[unnamed]");
        let sent = SentName { name: b"f", file: b"a", ..SentName::default() };
        functions.add_sent_name(frame, sent);
        assert_eq!(find(&mut functions, &mut names), b"f (a)");
    }

    #[test]
    fn a_name_that_was_sent_is_believed_before_one_that_was_read() {
        let frame = ScriptFrame { code: 8, instruction: 0, first_line: 1, hash: 0, is_outermost: false, native: 0 };
        // The process has the function at the address whenever it is read.
        for (name, is_name_cut, shown) in [("g", false, "g (a)"), ("f0", false, "f0 (a)"), ("0", true, "f0 (a)")] {
            let (interpreter, mut names) = (Replacing(AtomicU64::new(3)), ScriptFrames::default());
            let mut functions = Functions::default();
            let sent = SentName { name: name.as_bytes(), is_name_cut, file: b"a", ..SentName::default() };
            functions.add_sent_name(frame, sent);
            let memory = Memory { pid: 1, read: |_, _, _| 0 };
            let number = functions.find_frame(frame, &interpreter, memory, false, &mut names);
            assert_eq!(names.get(number.into()).unwrap().name, shown.as_bytes(), "{name}");
        }
    }

    #[test]
    fn a_function_that_is_replaced_while_it_is_read_has_no_name() {
        for (reads, shown) in [(0, "[unnamed]"), (1, "[unnamed]"), (2, "[unnamed]"), (3, "f0 (a)")] {
            let frame = ScriptFrame { code: 8, instruction: 0, first_line: 1, hash: 0, is_outermost: false, native: 0 };
            let (interpreter, mut names) = (Replacing(AtomicU64::new(reads)), ScriptFrames::default());
            let number = Functions::default().find_frame(
                frame,
                &interpreter,
                Memory { pid: 1, read: |_, _, _| 0 },
                false,
                &mut names,
            );
            assert_eq!(names.get(number.into()).unwrap().name, shown.as_bytes(), "{reads} reads");
        }
    }

    #[test]
    fn shortens_paths_of_modules() {
        for (path, short) in [
            ("/usr/lib/python3.11/threading.py", "threading.py"),
            ("/usr/lib/python3/dist-packages/numpy/core/fromnumeric.py", "numpy/core/fromnumeric.py"),
            ("/venv/lib/python3.13t/site-packages/django/urls/base.py", "django/urls/base.py"),
            ("/home/me/app.py", "/home/me/app.py"),
            ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
            ("/usr/lib/python3.11", "/usr/lib/python3.11"),
        ] {
            assert_eq!(short_path(path.as_bytes()), short.as_bytes(), "{path}");
        }
    }

    fn function(class: &str, name: &str, file: &str) -> Function {
        let (name, class, file) = (name.into(), class.into(), file.into());
        Function { name, class, file, first_line: 3, lines: None }
    }

    fn name_in_php(function: Function, line: Option<u32>) -> String {
        String::from_utf8(frame_name(&function, line, b"php")).unwrap()
    }

    #[test]
    fn a_frame_has_name_file_and_line() {
        assert_eq!(name_in_php(function("", "A.f", "/x/a.py"), None), "A.f (/x/a.py)");
        assert_eq!(name_in_php(function("", "A.f", "/x/a.py"), Some(7)), "A.f (/x/a.py:7)");
        assert_eq!(name_in_php(function("", "", "/x/a.php"), Some(7)), "{main} (/x/a.php:7)");
        assert_eq!(name_in_php(function("A", "f", "/x/a.php"), None), "A::f (/x/a.php)");
        assert_eq!(name_in_php(function("ArrayIterator", "next", ""), Some(7)), "ArrayIterator::next (php)");
    }
}
