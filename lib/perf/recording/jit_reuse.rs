//! Assigns samples in JIT code to the function that was at their address at their time.
//!
//! A JIT compiler may have reused an address for another function since. What the jitdump says is known only at the
//! end.

use rustc_hash::FxHashMap;

use super::stack::STACK_HEADER;
use super::{Recording, SampleRecord};
use crate::perf::location::Location;
use crate::perf::objects::object::Object;

impl Recording {
    /// Completes the recording: no more events will be handled.
    pub fn finish(&mut self) {
        self.flush_pending_samples();
        self.objects.jit_code.read_jitdumps();
        // True for the locations whose address was reused.
        let mut is_reused = FxHashMap::default();
        for index in 0..self.sample_records.len() {
            let SampleRecord { stamp, period, stack } = self.sample_records[index];
            let mut ids = self.stacks.get(stack).to_vec();
            let mut has_changed = false;
            for id in &mut ids[STACK_HEADER..] {
                let location = self.locations.all()[*id as usize];
                let Object::Jit { pid, .. } = self.objects.get(location.object) else { continue };
                let Some(dump) = self.objects.jit_code.jitdump(*pid) else { continue };
                if *is_reused.entry(*id).or_insert_with(|| dump.is_reused(location.address))
                    && let Some(function) = dump.find(location.address, stamp.time)
                {
                    *id = self.locations.intern(Location { loaded_at: function.loaded_at, ..location });
                    has_changed = true;
                }
            }
            if has_changed {
                self.move_sample(index, period, &ids);
            }
        }
    }

    /// Moves a sample to the stack with these IDs.
    fn move_sample(&mut self, index: usize, period: u64, ids: &[u32]) {
        let old = &mut self.tallies[self.sample_records[index].stack as usize];
        old.samples -= 1;
        old.period -= u128::from(period);
        let stack = self.stacks.intern(ids);
        self.add_to_tally(stack, 1, period);
        self.sample_records[index].stack = stack;
    }
}
