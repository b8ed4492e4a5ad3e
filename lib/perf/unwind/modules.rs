//! All objects whose code was met, loaded once each into one address space of our own.
//!
//! The range of an object is the same for all processes, wherever they map it. What framehop learns about an object
//! serves all processes, and no exec or fork rebuilds anything.

use framehop::{FrameAddress, Unwinder as _};
use rustc_hash::FxHashMap;

use super::arch::Architecture;
use super::code::Code;
use super::go::{GoRule, GoUnwindInfo};
use super::module::{self, LoadedModule};
use crate::perf::cfi::CfiTable;
use crate::perf::objects::object::ObjectId;

/// Each object gets 2 to this many bytes of the address space.
const MODULE_SIZE_BITS: u32 = 44;

/// Maximum number of addresses of an object that are remembered.
const MAX_COVERED: usize = 1 << 18;

/// framehop's unwinder with the objects that were loaded into it.
pub(super) struct Modules<A: Architecture> {
    framehop: A::Unwinder,
    caches: RuleCaches<A>,
    /// By object. `None` if the object was not met yet.
    objects: Vec<Option<UnwindInfo>>,
    /// The Go programs among the objects.
    go: FxHashMap<ObjectId, GoUnwindInfo>,
}

/// The unwind information of an object.
pub(super) enum UnwindInfo {
    /// The object has none.
    Missing,
    /// The object is loaded.
    Loaded {
        /// The offset that is added to its addresses.
        base: u64,
        /// Its lowest address, before `base` is added.
        start: u64,
        /// The frames that framehop cannot step.
        cfi: Box<CfiTable>,
        /// Tells for each address if it has unwind information.
        covered: FxHashMap<u64, bool>,
    },
}

impl<A: Architecture> Modules<A> {
    pub(super) fn new() -> Self {
        Self {
            framehop: Default::default(),
            caches: RuleCaches::default(),
            objects: Vec::new(),
            go: FxHashMap::default(),
        }
    }

    /// Number of objects, up to the last that was met.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Loads the object of some code, if this is the first frame in it.
    pub(super) fn load(&mut self, code: &Code<'_>) {
        let index = code.object.index();
        if self.objects.len() <= index {
            self.objects.resize_with(index + 1, || None);
        }
        if self.objects[index].is_some() {
            return;
        }
        if let Some(go) = GoUnwindInfo::load(code.elf) {
            self.go.insert(code.object, go);
        }
        let base = (index as u64 + 1) << MODULE_SIZE_BITS;
        self.objects[index] = Some(match module::load(code.elf, base, 1 << MODULE_SIZE_BITS, [A::SP, A::FP]) {
            Some(LoadedModule { start, module, cfi }) => {
                self.framehop.add_module(module);
                UnwindInfo::Loaded { base, start, cfi: Box::new(cfi), covered: FxHashMap::default() }
            }
            None => UnwindInfo::Missing,
        });
    }

    /// Returns the unwind information of the object of some code, if the object was loaded.
    pub(super) fn get(&self, code: &Code<'_>) -> Option<&UnwindInfo> {
        self.objects.get(code.object.index())?.as_ref()
    }

    /// Returns the rule of some code, if it is a Go function of an object that was loaded.
    pub(super) fn find_go_rule(&self, code: &Code<'_>) -> Option<GoRule> {
        self.go.get(&code.object)?.find(code)
    }

    /// Returns true if there is unwind information of some code, whose object is loaded.
    pub(super) fn is_covered(&mut self, code: &Code<'_>) -> bool {
        let Some(Some(UnwindInfo::Loaded { cfi, covered, .. })) = self.objects.get_mut(code.object.index()) else {
            return false;
        };
        if covered.len() > MAX_COVERED {
            covered.clear();
        }
        *covered.entry(code.svma).or_insert_with(|| cfi.covers(code.svma))
    }

    /// Unloads an object, so that its number can be given to another.
    pub(super) fn unload(&mut self, object: ObjectId) {
        self.go.remove(&object);
        if let Some(info) = self.objects.get_mut(object.index()).and_then(Option::take)
            && let UnwindInfo::Loaded { base, start, .. } = info
        {
            self.framehop.remove_module(base + start);
            // Cache entries are invalidated by a small counter of such changes, which may wrap around.
            self.caches = RuleCaches::default();
        }
    }

    /// Lets framehop step to the caller.
    pub(super) fn step(
        &mut self,
        address: FrameAddress,
        regs: &mut A::Regs,
        read_stack: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Result<Option<u64>, framehop::Error> {
        let cache = self.caches.get(address.address_for_lookup());
        self.framehop.unwind_frame(address, regs, cache, read_stack)
    }
}

/// Number of rules in a cache of framehop's. A rule's index is its address modulo this.
const RULES_PER_CACHE: u64 = 509;

/// The rules that framehop has learned.
///
/// One cache holds the rules of 509 addresses, and the stacks of a compiler have many times as many.
struct RuleCaches<A: Architecture> {
    caches: [Option<Box<A::Cache>>; 256],
}

impl<A: Architecture> Default for RuleCaches<A> {
    fn default() -> Self {
        Self { caches: [const { None }; 256] }
    }
}

impl<A: Architecture> RuleCaches<A> {
    /// Returns the cache for an address.
    fn get(&mut self, address: u64) -> &mut A::Cache {
        let index = (address / RULES_PER_CACHE) as usize % self.caches.len();
        self.caches[index].get_or_insert_default()
    }
}
