//! Names that only their places in the stacks explain: threads, labels of samples, the kernel, the Java virtual machine.

use std::collections::{HashMap, HashSet};

use super::layout::Layout;
use super::module::{Kind, origin};
use crate::profile::FrameId;
use crate::symbol_name::kernel::is_kernel_entry;
use crate::{java, markers};

/// The names of a layout whose places tell what they are.
#[derive(Debug, Default)]
pub struct Places {
    /// Names that are only at the root of stacks, below labels: threads and processes.
    pub threads: HashSet<Vec<u8>>,
    /// Names above those of threads, such as the spans of `fg-record --split-by`.
    pub labels: HashSet<Vec<u8>>,
    /// Names of the kernel without its suffix, as some inputs have them: callees of its entries.
    pub kernel: HashSet<Vec<u8>>,
    /// Functions of the Java virtual machine, whose names do not tell that.
    pub java: HashSet<Vec<u8>>,
}

impl Places {
    pub fn find(layout: &Layout) -> Self {
        let (kernel, java) = (find_kernel(layout), find_java(layout));
        let (mut threads, labels) = (find_roots(layout), find_labels(layout));
        threads.retain(|name| !labels.labels.contains(name));
        threads.extend(labels.threads);
        Self { threads, labels: labels.labels, kernel, java }
    }

    /// True for names that are no functions.
    pub fn is_root(&self, name: &[u8]) -> bool {
        self.threads.contains(name) || self.labels.contains(name)
    }
}

/// Returns the names that are only at the root of stacks and do not look like functions.
fn find_roots(layout: &Layout) -> HashSet<Vec<u8>> {
    let (mut roots, mut deeper) = (HashSet::new(), HashSet::new());
    for frame in &layout.frames {
        let names = if frame.depth == 0 { &mut roots } else { &mut deeper };
        names.insert(layout.names.name(frame.name));
    }
    roots.into_iter().filter(|name| !deeper.contains(name) && is_thread(name)).map(<[u8]>::to_vec).collect()
}

/// Returns true unless a name at the root of a stack looks like a function.
fn is_thread(name: &[u8]) -> bool {
    !matches!(name, b"main" | b"_start") && !markers::is_marker(name) && origin(name) == (Kind::Module, "".into())
}

/// The names above the first function of a process or a thread.
#[derive(Default)]
struct AboveStart {
    threads: HashSet<Vec<u8>>,
    labels: HashSet<Vec<u8>>,
}

/// Returns the names above the first functions of processes and threads, which nothing calls: the lowest is that of the
/// thread, and the others are labels. Without any label, [`find_roots`] knows the threads.
fn find_labels(layout: &Layout) -> AboveStart {
    let (mut above, mut below) = (AboveStart::default(), HashSet::new());
    let (mut path, mut start) = (Vec::<FrameId>::new(), usize::MAX);
    for frame in &layout.frames {
        path.truncate(frame.depth);
        if frame.depth <= start {
            start = usize::MAX;
        }
        let name = layout.names.name(frame.name);
        if start < usize::MAX {
            below.insert(name);
        } else if let Some(depth) = depth_of_start(layout, &path, name) {
            start = depth;
            let (roots, starts) = path.split_at(depth);
            below.extend(starts.iter().map(|frame| layout.names.name(*frame)));
            below.insert(name);
            if let [labels @ .., thread] = roots
                && !labels.is_empty()
            {
                above.threads.insert(layout.names.name(*thread).to_vec());
                above.labels.extend(labels.iter().map(|frame| layout.names.name(*frame).to_vec()));
            }
        }
        path.push(frame.name);
    }
    let is_function = |name: &[u8]| below.contains(name) || markers::is_marker(name);
    above.threads.retain(|name| !is_function(name) && is_thread(name));
    above.labels.retain(|name| !is_function(name) && !above.threads.contains(name));
    above
}

/// Returns the index of the first function in a path whose next frame is the start of a process or a thread.
fn depth_of_start(layout: &Layout, path: &[FrameId], name: &[u8]) -> Option<usize> {
    let caller = path.last().map_or(&b""[..], |frame| layout.names.name(*frame));
    match name {
        b"_start" | b"runtime.goexit" | b"runtime.goexit.abi0" => Some(path.len()),
        b"start_thread" if matches!(caller, b"clone" | b"clone3" | b"__clone") => Some(path.len() - 1),
        _ => None,
    }
}

/// Returns the names that have most of their weight below the kernel's entries.
fn find_kernel(layout: &Layout) -> HashSet<Vec<u8>> {
    find_inside(layout, |name| Borders::of(name).kernel, can_be_kernel)
}

/// Returns the names of native functions most of whose weight is in the Java virtual machine: below its entries, but not
/// below a native method of the program.
fn find_java(layout: &Layout) -> HashSet<Vec<u8>> {
    find_inside(layout, |name| Borders::of(name).java, can_be_java)
}

fn can_be_kernel(name: &[u8]) -> bool {
    !markers::is_marker(name) && !name.ends_with(markers::WAKER)
}

fn can_be_java(name: &[u8]) -> bool {
    java::is_native(name) && matches!(origin(name).0, Kind::Module | Kind::Interpreter)
}

/// The effect of a function on a part of the stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    /// The function and its callees are in the part.
    Entry,
    /// The function and its callees are outside.
    Exit,
    /// The function is where its caller is.
    None,
}

impl Border {
    fn new(is_entry: bool, is_exit: bool) -> Self {
        match (is_entry, is_exit) {
            (true, _) => Self::Entry,
            (false, true) => Self::Exit,
            (false, false) => Self::None,
        }
    }

    /// Returns true if the function is in the part.
    fn is_inside(self, is_caller_inside: bool) -> bool {
        self == Self::Entry || (self == Self::None && is_caller_inside)
    }
}

/// The effects of a function on the parts of the stacks that are in the kernel and in the Java virtual machine.
#[derive(Clone, Copy, Debug)]
struct Borders {
    kernel: Border,
    java: Border,
}

impl Borders {
    fn of(name: &[u8]) -> Self {
        // Below a blocked stack is that of its waker.
        let kernel = Border::new(is_kernel_entry(name), name == markers::WAKER_SEPARATOR);
        Self { kernel, java: Border::new(java::is_entry(name), name.starts_with(b"Java_")) }
    }
}

/// Counts where the frames of each name are, including those too narrow to draw, which a layout does not have.
#[derive(Debug, Default)]
pub struct PlaceCounts {
    /// For each frame of the last stack, if it is in the kernel and in the Java virtual machine.
    path: Vec<(bool, bool)>,
    /// The counts of each name, by its number.
    names: Vec<NameCounts>,
}

#[derive(Debug)]
struct NameCounts {
    borders: Borders,
    /// Number of frames in the kernel, minus those outside.
    kernel: i64,
    /// Number of frames in the Java virtual machine, minus those outside.
    java: i64,
    /// True if a frame is at the root of a stack.
    is_root: bool,
    /// True if a frame has a caller.
    has_caller: bool,
}

impl PlaceCounts {
    /// Adds the name with the next number.
    pub fn add_name(&mut self, name: &[u8]) {
        self.names.push(NameCounts {
            borders: Borders::of(name),
            kernel: 0,
            java: 0,
            is_root: false,
            has_caller: false,
        });
    }

    /// Returns the number of names.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// Adds a stack. Its first `shared` frames are those of the previous stack, the others have the name numbers `new`.
    pub fn add(&mut self, shared: usize, new: &[u32]) {
        self.path.truncate(shared);
        for number in new {
            let counts = &mut self.names[*number as usize];
            let (kernel, java) = self.path.last().copied().unwrap_or_default();
            let (kernel, java) = (counts.borders.kernel.is_inside(kernel), counts.borders.java.is_inside(java));
            counts.kernel += if kernel { 1 } else { -1 };
            counts.java += if java { 1 } else { -1 };
            counts.is_root |= self.path.is_empty();
            counts.has_caller |= !self.path.is_empty();
            self.path.push((kernel, java));
        }
    }
}

impl Places {
    /// Adds the names that the layout does not have, because all their frames are too narrow to draw.
    pub fn add_undrawn<'a>(&mut self, layout: &Layout, names: impl Iterator<Item = &'a [u8]>, counts: &PlaceCounts) {
        let drawn: HashSet<_> = layout.frames.iter().map(|frame| layout.names.name(frame.name)).collect();
        for (name, counts) in names.zip(&counts.names).filter(|(name, _)| !drawn.contains(name)) {
            if counts.kernel > 0 && can_be_kernel(name) {
                self.kernel.insert(name.to_vec());
            } else if counts.java > 0 && can_be_java(name) {
                self.java.insert(name.to_vec());
            } else if counts.is_root && !counts.has_caller && is_thread(name) {
                self.threads.insert(name.to_vec());
            }
        }
    }
}

/// Returns the wanted names most of whose weight is in a part of the stacks.
fn find_inside(
    layout: &Layout,
    border: impl Fn(&[u8]) -> Border,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> HashSet<Vec<u8>> {
    let (mut path, mut weights) = (Vec::<bool>::new(), HashMap::<&[u8], f64>::new());
    for frame in &layout.frames {
        let name = layout.names.name(frame.name);
        path.truncate(frame.depth);
        let inside = border(name).is_inside(path.last() == Some(&true));
        path.push(inside);
        let weight = frame.total.after.as_f64() + frame.total.before.as_f64();
        *weights.entry(name).or_default() += if inside { weight } else { -weight };
    }
    let inside = weights.into_iter().filter(|(name, weight)| *weight > 0.0 && is_wanted(name));
    inside.map(|(name, _)| name.to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::{PlaceCounts, Places};
    use crate::profile::{Frames, Weight, Weights};
    use crate::svg::layout::{Layout, LayoutBuilder};

    fn find(stacks: &[&str]) -> Places {
        let mut builder = LayoutBuilder::new(0.0, Weight::ZERO);
        for stack in stacks {
            builder.add(0, stack.split(';').map(str::as_bytes), Weights::plain(Weight::new(1))).unwrap();
        }
        Places::find(&builder.finish())
    }

    fn sorted(names: &std::collections::HashSet<Vec<u8>>) -> Vec<String> {
        let mut names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn labels_are_above_threads_and_threads_above_the_first_function() {
        let places = find(&[
            "/r/01;0f;app;_start;main;work;clone3;sleep",
            "/r/01;1a;pool;clone3;start_thread;work",
            "[no span];[no span];app;_start;main",
        ]);
        assert_eq!(sorted(&places.labels), ["/r/01", "0f", "1a", "[no span]"]);
        assert_eq!(sorted(&places.threads), ["app", "pool"]);
        // Without a first function, nothing tells a label from a function.
        let places = find(&["/r/01;0f;app;[truncated];work", "app;main;start_thread;work"]);
        assert_eq!(sorted(&places.labels), [""; 0]);
        let places = find(&["app;_start;main;callback;work", "other;main;_start;work"]);
        assert_eq!(
            (sorted(&places.labels), sorted(&places.threads)),
            (vec!["other".to_owned()], vec!["app".to_owned()])
        );
    }

    #[test]
    fn names_too_narrow_to_draw_have_places() {
        let stacks = ["app;main;do_syscall_64;vfs_read", "kworker;ret_from_fork;work", "app;main;parse;copy"];
        let (mut names, mut counts) = (Frames::new(), PlaceCounts::default());
        for stack in stacks {
            let numbers: Vec<_> = stack.split(';').map(|name| names.intern(name.as_bytes()).index() as u32).collect();
            for (_, name) in names.iter().skip(counts.name_count()) {
                counts.add_name(name);
            }
            counts.add(0, &numbers);
        }
        let mut places = Places::default();
        places.add_undrawn(&Layout::default(), names.iter().map(|(_, name)| name), &counts);
        assert_eq!(sorted(&places.kernel), ["do_syscall_64", "ret_from_fork", "vfs_read", "work"]);
        assert_eq!(sorted(&places.threads), ["app", "kworker"]);
    }

    #[test]
    fn functions_of_wakers_are_not_of_the_kernel_that_blocks() {
        let places =
            find(&["app;main;entry_SYSCALL_64_after_hwframe;schedule;--;app_[w];entry_SYSCALL_64_[w];wake_[w]"]);
        assert_eq!(sorted(&places.kernel), ["entry_SYSCALL_64_after_hwframe", "schedule"]);
    }

    #[test]
    fn the_virtual_machine_is_below_its_entries() {
        let places = find(&[
            "C2;clone3;start_thread;thread_native_entry;JavaThread::run;C2Compiler::compile_method;Phase::go;malloc",
            "java;clone3;start_thread;JavaMain;jni_CallVoid;App.main;java.util.List.of;OptoRuntime::new_array;[lost]",
            "java;clone3;start_thread;JavaMain;jni_CallVoid;App.main;Java_App_sum;sum;ns::Sum::add",
        ]);
        let expected =
            ["C2Compiler::compile_method", "JavaMain", "JavaThread::run", "OptoRuntime::new_array", "Phase::go"];
        let expected = [&expected[..], &["jni_CallVoid", "thread_native_entry"]].concat();
        assert_eq!(sorted(&places.java), expected);
    }
}
