//! Tells the program's own functions from those of libraries, run times and the kernel: by their names, and by where
//! they are in a stack.
//!
//! A name alone does not tell the inside of the kernel or of the C library from the program: `hack_digit` may be
//! anything. Hence the code below a system call, an interrupt, or a function such as `printf` is never the program's
//! own, whatever its name. Below the entry of an interpreter or of a virtual machine, only functions of the interpreted
//! language are.

mod by_name;
mod interpreters;
mod run_time_names;

pub(crate) use self::by_name::{Origin, is_known_package};
pub(crate) use self::run_time_names::may_be_of_run_time;

use self::by_name::{Calls, Classifier, INTERPRETER, KERNEL, Known, OTHER, OWN_CODE};
use self::interpreters::Interpreters;

use memchr::memmem;

use crate::categories::Categories;
use crate::filter::FrameMatcher;
use crate::markers;
use crate::profile::{FrameId, Frames, Profile, is_at_least};

/// Roots are functions if stacks of a single frame have this part of the weight.
const MIN_SINGLE: (u128, u128) = (1, 20);

/// Roots are functions if those whose names no thread has have this part of the weight.
const MIN_QUALIFIED: (u128, u128) = (1, 2);

/// Roots are functions if stacks in which others call them have this part of the weight. A thread may be named like a function.
const MIN_CALLED: (u128, u128) = (1, 4);

/// The parts of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    /// The index of the program's own function nearest to the leaf.
    pub(crate) own: Option<usize>,
    /// The number of frames from the root on that may be the program's own.
    pub(crate) open: usize,
    /// The kind of the code from there on that has no kind of its own.
    inside: Option<&'a str>,
    /// True if the stack is in an interpreter, but no function of a script has a frame in the profile.
    pub(crate) is_without_scripts: bool,
}

/// The origins of all frames.
pub(crate) struct Origins<'a> {
    known: Vec<Known<'a>>,
    /// True if a pattern alone decides which functions are the program's own.
    has_own_pattern: bool,
    /// True if functions of scripts have frames.
    has_scripts: bool,
    /// True if code without a symbol is named by its file.
    names_files: bool,
    /// True if the roots of stacks are names of threads.
    has_thread_names: bool,
    /// True if the roots of stacks are functions. If neither is known, roots may be both.
    has_function_roots: bool,
    /// True for the roots of the stacks of interpreters, if no function of a script has a frame in the profile.
    lacks_scripts: Vec<bool>,
    /// True if fg-record shows functions that the profile lacks.
    can_record_scripts: bool,
}

impl<'a> Origins<'a> {
    /// Creates the origins for the frames of a profile. If `own` is given, it alone decides which functions are the
    /// program's own.
    fn new(frames: &Frames, categories: &'a Categories, own: Option<FrameMatcher>) -> Self {
        let has_own_pattern = own.is_some();
        let mut classifier = Classifier::new(frames, categories, own);
        let known: Vec<Known<'_>> =
            frames.iter().map(|(frame, name)| classifier.classify(frames, frame, name)).collect();
        let has_scripts = known.iter().any(|known| known.is_script && known.origin == Origin::Own);
        let is_file = |name: &[u8]| markers::is_without_symbol(name) && name != markers::UNKNOWN;
        let names_files = frames.iter().any(|(_, name)| is_file(name));
        Self {
            lacks_scripts: vec![false; known.len()],
            can_record_scripts: false,
            known,
            has_own_pattern,
            has_scripts,
            names_files,
            has_thread_names: false,
            has_function_roots: false,
        }
    }

    /// Creates the origins for the frames of a profile, and learns from its stacks. If `own` is given, it alone decides which functions
    /// are the program's own.
    pub(crate) fn find(profile: &Profile, categories: &'a Categories, own: Option<FrameMatcher>) -> Self {
        let has_own_pattern = own.is_some();
        let mut origins = Self::new(&profile.frames, categories, own);
        if !has_own_pattern {
            origins.find_kernel(profile);
        }
        origins.find_roots(profile);
        if !has_own_pattern {
            origins.find_interpreters(profile);
        }
        origins
    }

    /// Learns from the stacks which functions with names like those of the kernel are in it: those that an entry of the kernel
    /// calls, and those in which a thread has left its CPU.
    fn find_kernel(&mut self, profile: &Profile) {
        let mut is_in_kernel = vec![false; self.known.len()];
        let _ = profile.for_each(|stack, _| {
            let entered = stack.iter().skip_while(|frame| !self.enters_kernel(**frame));
            let states = stack.iter().rev().take_while(|frame| self.origin(**frame) == Origin::Marker).count();
            let waiting = stack[..stack.len() - states].iter().rev();
            let waiting = waiting.take_while(|frame| states > 0 && self.is_kernel(**frame));
            entered.chain(waiting).for_each(|frame| is_in_kernel[frame.index()] = true);
            Ok::<(), ()>(())
        });
        let known = self.known.iter_mut().zip(is_in_kernel);
        let outside = known.filter(|(known, is_in_kernel)| known.may_be_kernel && !is_in_kernel);
        outside.for_each(|(known, _)| known.set_own());
    }

    /// True for functions by which the kernel is entered.
    fn enters_kernel(&self, frame: FrameId) -> bool {
        let known = &self.known[frame.index()];
        matches!(known.kind, "kernel-syscall" | "kernel-irq")
            || known.calls == Calls::Closed && known.kind.starts_with(KERNEL)
    }

    /// Learns from the stacks if their roots are names of threads or functions.
    ///
    /// They are names of threads if the start of a thread comes below one, and then no functions of the program, whatever
    /// they are called. They are functions if one is `main`, the start of a process or a function of a script, if most have
    /// names like `net/http.(*conn).serve` or `app::serve`, if stacks of a single frame have much of the weight, since threads have
    /// frames, or if much is below others that call them: no thread calls another one.
    fn find_roots(&mut self, profile: &Profile) {
        let (mut single, mut qualified, mut total) = (0_u128, 0_u128, 0_u128);
        let (mut has_start, mut has_function) = (false, false);
        let _ = profile.for_each(|stack, weights| {
            let weight = weights.before.millionths().saturating_add(weights.after.millionths());
            total = total.saturating_add(weight);
            has_start |= stack.len() > 2 && (1..3).any(|index| self.is_start(stack[index]));
            let Some(root) = stack.first() else { return Ok::<(), ()>(()) };
            let known = &self.known[root.index()];
            has_function |=
                profile.frames.name(*root) == b"main" || known.calls == Calls::Start || known.has_script_file;
            if is_qualified(profile.frames.name(*root)) {
                qualified = qualified.saturating_add(weight);
            }
            let is_single = stack[1..].iter().all(|frame| self.origin(*frame) == Origin::Marker);
            if is_single && known.origin == Origin::Own {
                single = single.saturating_add(weight);
            }
            Ok(())
        });
        self.has_thread_names = has_start;
        let has_single = single > 0 && is_at_least(single, MIN_SINGLE, total);
        let has_qualified = qualified > 0 && is_at_least(qualified, MIN_QUALIFIED, total);
        let is_called = || is_at_least(weight_of_called_roots(profile), MIN_CALLED, total);
        self.has_function_roots = !has_start && (has_function || has_single || has_qualified || is_called());
    }

    /// Learns from the stacks which native functions are those of an interpreter or its extensions: those that only its threads call.
    fn find_interpreters(&mut self, profile: &Profile) {
        if self.has_function_roots {
            return;
        }
        let interpreters = Interpreters::find(self, profile);
        let inside = interpreters.find_only_inside(self, profile);
        for ((known, is_inside), (_, name)) in self.known.iter_mut().zip(inside).zip(profile.frames.iter()) {
            // Some methods of Java have names without their class, and some an address alone.
            let may_be_method = name.contains(&b'/') || name.starts_with(b"0x");
            if is_inside && known.origin == Origin::Own && !known.is_script && !may_be_method {
                known.set_inside_interpreter();
            }
        }
        if !self.has_scripts {
            self.lacks_scripts = interpreters.processes;
            self.can_record_scripts = interpreters.can_record_scripts;
        }
    }

    /// True for the root of the stacks of an interpreter, if no function of a script has a frame in the profile.
    pub(crate) fn lacks_scripts(&self, root: FrameId) -> bool {
        self.lacks_scripts[root.index()]
    }

    /// True if fg-record shows functions of scripts that the profile lacks.
    pub(crate) fn can_record_scripts(&self) -> bool {
        self.can_record_scripts
    }

    /// True if the roots of stacks are functions.
    pub(crate) fn has_function_roots(&self) -> bool {
        self.has_function_roots
    }

    /// Returns the index of the first frame that may be a function.
    pub(crate) fn first_function(&self) -> usize {
        usize::from(self.has_thread_names)
    }

    /// Returns the origin of a frame by its name.
    pub(crate) fn origin(&self, frame: FrameId) -> Origin {
        self.known[frame.index()].origin
    }

    /// True if the roots of stacks are names of threads.
    pub(crate) fn has_thread_names(&self) -> bool {
        self.has_thread_names
    }

    /// True for the program's own functions of scripts.
    pub(crate) fn is_own_script(&self, frame: FrameId) -> bool {
        let known = &self.known[frame.index()];
        known.is_script && known.origin == Origin::Own
    }

    /// True if the profile names the file of code without a symbol.
    pub(crate) fn names_files(&self) -> bool {
        self.names_files
    }

    /// True for functions of the kernel, and for those by which it is entered.
    pub(crate) fn is_kernel(&self, frame: FrameId) -> bool {
        self.known[frame.index()].kind.starts_with(KERNEL)
    }

    /// True for functions that start a process or a thread.
    pub(crate) fn is_start(&self, frame: FrameId) -> bool {
        self.known[frame.index()].calls == Calls::Start
    }

    /// True if a stack is that of a thread that was started, not of a process.
    pub(crate) fn is_in_thread(&self, stack: &[FrameId]) -> bool {
        stack.iter().take(4).any(|frame| self.known[frame.index()].starts_thread)
    }

    /// Returns the index of the function among those below an own one that says most about the call. That is a function
    /// of a script; else the first that has a name and does more than pass the call on; else a library without symbols;
    /// else the first function of the C library or of the kernel.
    pub(crate) fn callee(&self, below: &[FrameId]) -> Option<usize> {
        let known = below.iter().map(|frame| &self.known[frame.index()]);
        let open = known.clone().take_while(|known| known.calls != Calls::Closed).count();
        let script = known.clone().position(|known| self.has_scripts && known.has_script_file && !known.is_glue);
        script
            .or_else(|| known.clone().take(open).position(Known::is_function))
            .or_else(|| known.clone().take(open).position(|known| known.is_library_file))
            .or_else(|| self.system_call(below))
            .or_else(|| known.clone().position(|known| known.calls == Calls::Closed))
            .or_else(|| known.clone().position(|known| known.origin == Origin::Unknown))
            .or(below.len().checked_sub(1))
    }

    /// Returns the index of the function of a system call, if nothing but the kernel's entry comes before it.
    fn system_call(&self, below: &[FrameId]) -> Option<usize> {
        let mut known = below.iter().map(|frame| &self.known[frame.index()]).enumerate();
        known.find(|(_, known)| known.calls == Calls::Closed).filter(|(_, entry)| entry.is_glue)?;
        let (index, _) = known.find(|(_, known)| !known.is_glue).filter(|(_, call)| call.kind.starts_with(KERNEL))?;
        Some(index)
    }

    /// True for a function that has a name and does more than pass the call on.
    pub(crate) fn says_something(&self, frame: FrameId) -> bool {
        self.known[frame.index()].is_function()
    }

    /// True for a function that calls nothing of the program.
    pub(crate) fn is_closed(&self, frame: FrameId) -> bool {
        self.known[frame.index()].calls == Calls::Closed
    }

    /// True unless the function only runs others: it is part of an interpreter, or of the start of a thread.
    pub(crate) fn is_function(&self, frame: FrameId) -> bool {
        let known = &self.known[frame.index()];
        known.has_script_file || (known.kind != INTERPRETER && matches!(known.calls, Calls::Any | Calls::Closed))
    }

    /// True for a function that runs those of an interpreted or managed language.
    pub(crate) fn is_run_time(&self, frame: FrameId) -> bool {
        self.known[frame.index()].calls == Calls::Scripts
    }

    /// Finds the program's own code in a stack, root first.
    pub(crate) fn place(&self, stack: &[FrameId]) -> Place<'a> {
        let mut place = Place { open: stack.len(), ..Place::default() };
        place.is_without_scripts = stack.first().is_some_and(|root| self.lacks_scripts(*root));
        if self.has_own_pattern {
            let own = stack.iter().rposition(|frame| self.origin(*frame) == Origin::Own);
            place.own = own.filter(|own| *own >= self.first_function());
            return place;
        }
        let mut is_managed = false;
        for (index, frame) in stack.iter().enumerate() {
            let known = &self.known[frame.index()];
            if index >= self.first_function() && is_own(known, is_managed) {
                place.own = Some(index);
            }
            match known.calls {
                // A program may be called `log`.
                Calls::Closed if index == 0 && stack.len() > 1 && !self.has_function_roots => {}
                Calls::Closed => {
                    place.open = index;
                    place.inside = Some(if known.kind.starts_with(KERNEL) { KERNEL } else { known.kind });
                    break;
                }
                Calls::Scripts if self.has_scripts => {
                    is_managed = true;
                    place.inside = Some(known.kind);
                }
                Calls::Scripts => place.is_without_scripts = true,
                Calls::Any if known.has_script_file => {
                    is_managed = true;
                    place.inside = Some(INTERPRETER);
                }
                Calls::Any | Calls::Start => {}
            }
        }
        place
    }

    /// Returns for each function of a stack, outside of closed code, true if it is the program's own.
    pub(crate) fn find_own(&self, stack: &[FrameId]) -> Vec<bool> {
        let may_be_managed = !self.has_own_pattern && self.has_scripts;
        let mut is_managed = false;
        let own = stack.iter().enumerate().map(|(index, frame)| {
            let known = &self.known[frame.index()];
            let is_own = index >= self.first_function() && is_own(known, is_managed);
            is_managed |= may_be_managed && (known.calls == Calls::Scripts || known.has_script_file);
            is_own
        });
        own.collect()
    }

    /// Returns the kind of code of a stack's leaf: `own code`, `libraries`, or a category.
    pub(crate) fn kind(&self, leaf: FrameId, place: &Place<'a>, is_own: bool) -> &'a str {
        let Known { kind, origin, .. } = self.known[leaf.index()];
        match place.inside {
            // A thread state says more than where the thread waits.
            _ if origin == Origin::Marker && kind != OTHER => kind,
            Some(KERNEL) if !kind.starts_with(KERNEL) => KERNEL,
            Some(inside) if kind == OWN_CODE && !is_own => inside,
            None if kind == OWN_CODE && origin == Origin::Library => INTERPRETER,
            _ => kind,
        }
    }
}

/// True if a function is the program's own. Below the entry of an interpreter, only functions of scripts are.
fn is_own(known: &Known<'_>, is_managed: bool) -> bool {
    known.origin == Origin::Own && (known.is_script || !is_managed)
}

/// Returns the weight of the stacks in which a root of other stacks is called.
fn weight_of_called_roots(profile: &Profile) -> u128 {
    let mut is_root = vec![false; profile.frames.len()];
    let mut sum = 0_u128;
    let _ = profile.for_each(|stack, _| {
        stack.first().into_iter().for_each(|root| is_root[root.index()] = true);
        Ok::<(), ()>(())
    });
    let _ = profile.for_each(|stack, weights| {
        let Some((root, called)) = stack.split_first() else { return Ok::<(), ()>(()) };
        if called.iter().any(|frame| frame != root && is_root[frame.index()]) {
            sum = sum.saturating_add(weights.before.millionths()).saturating_add(weights.after.millionths());
        }
        Ok(())
    });
    sum
}

/// True for names that functions have, and threads do not.
fn is_qualified(name: &[u8]) -> bool {
    let go = name.starts_with(b"runtime.") || name.starts_with(b"main.") || memmem::find(name, b".(*").is_some();
    go || memmem::find(name, b"::").is_some()
}

#[cfg(test)]
mod tests;
