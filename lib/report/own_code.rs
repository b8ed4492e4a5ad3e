//! Tells the program's own functions from those of libraries, run times and the kernel, by their names.

use std::sync::LazyLock;

use regex::bytes::RegexSet;

use crate::csv::Categories;
use crate::filter::FrameMatcher;
use crate::markers;
use crate::profile::{FrameId, Frames};

/// Patterns of libraries that are no category of their own.
static LIBRARIES: LazyLock<RegexSet> = LazyLock::new(|| {
    let lines = include_str!("libraries.txt").lines();
    RegexSet::new(lines.filter(|line| !line.is_empty() && !line.starts_with('#'))).expect("valid patterns")
});

/// The category of functions that no rule of [`Categories`] matches.
const OTHER: &str = "other";

/// The origin of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A function of the program.
    Own,
    /// A function of a library, of a run time or of the kernel.
    Library,
    /// Code without a symbol.
    Unknown,
    /// A thread state, `[lost]` or `[truncated]`.
    Marker,
}

/// The origins of all frames, and the kinds of code by which self weight is summed up.
pub(super) struct Origins<'a> {
    categories: &'a Categories,
    own: Option<FrameMatcher>,
    /// The origin and the kind of each frame.
    known: Vec<(Origin, &'a str)>,
}

impl<'a> Origins<'a> {
    /// Creates the origins for the frames of a profile. If `own` is given, it alone decides which functions are the
    /// program's own.
    pub(super) fn new(frames: &Frames, categories: &'a Categories, own: Option<FrameMatcher>) -> Self {
        let mut origins = Self { categories, own, known: Vec::with_capacity(frames.len()) };
        for (frame, name) in frames.iter() {
            let known = origins.classify(frames, frame, name);
            origins.known.push(known);
        }
        origins
    }

    /// Returns the origin of a frame.
    pub(super) fn origin(&self, frame: FrameId) -> Origin {
        self.known[frame.index()].0
    }

    /// Returns the kind of code: `own code`, `libraries`, or a category.
    pub(super) fn kind(&self, frame: FrameId) -> &'a str {
        self.known[frame.index()].1
    }

    fn classify(&mut self, frames: &Frames, frame: FrameId, name: &[u8]) -> (Origin, &'a str) {
        if markers::is_thread_state(name) || name == markers::LOST || name == markers::TRUNCATED {
            return (Origin::Marker, self.categories.categorize(name));
        }
        if markers::is_without_symbol(name) {
            return (Origin::Unknown, "unknown");
        }
        // Code that was compiled just in time or inlined is the program's own or a library's like any other.
        let plain = if name.ends_with(markers::KERNEL) { name } else { markers::strip_suffix(name) };
        let category = self.categories.categorize(plain);
        let is_own = match &mut self.own {
            Some(own) => own.matches(frames, frame),
            None => category == OTHER && !LIBRARIES.is_match(plain),
        };
        match is_own {
            true => (Origin::Own, "own code"),
            false if category == OTHER => (Origin::Library, "libraries"),
            false => (Origin::Library, category),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, Origins};
    use crate::csv::Categories;
    use crate::profile::Frames;

    #[test]
    fn tells_own_functions_from_libraries() {
        let categories = Categories::load(None).unwrap();
        for (name, expected) in [
            ("main", Origin::Own),
            ("myapp::parse", Origin::Own),
            ("main.handle", Origin::Own),
            ("com.example.Shop::total_[j]", Origin::Own),
            ("process_block", Origin::Own),
            ("strategy", Origin::Own),
            ("memmove", Origin::Library),
            ("__memmove_avx512_unaligned_erms", Origin::Library),
            ("malloc", Origin::Library),
            ("std::vector::push_back", Origin::Library),
            ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", Origin::Library),
            ("regex::regex::string::Regex::new", Origin::Library),
            ("runtime.mallocgc", Origin::Library),
            ("encoding/json.Marshal", Origin::Library),
            ("java.util.HashMap.put", Origin::Library),
            ("void java.util.HashMap.clear", Origin::Library),
            ("java.lang.Object com.example.Shop.find", Origin::Own),
            ("__unguarded_partition<int*>", Origin::Library),
            ("__init__", Origin::Own),
            ("vfs_read_[k]", Origin::Library),
            ("anything_[k]", Origin::Library),
            ("pthread_mutex_lock", Origin::Library),
            ("strlen", Origin::Library),
            ("[unknown]", Origin::Unknown),
            ("[libfoo.so]", Origin::Unknown),
            ("[off-cpu]", Origin::Marker),
        ] {
            let mut frames = Frames::new();
            let frame = frames.intern(name.as_bytes());
            assert_eq!(Origins::new(&frames, &categories, None).origin(frame), expected, "{name}");
        }
    }
}
