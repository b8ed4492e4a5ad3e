//! Code that was made at run time may have been replaced: an address is another function's at another time.

use rustc_hash::FxHashMap;

use super::stack::HEAD;
use super::{Kept, Recording};
use crate::perf::location::Location;
use crate::perf::objects::object::Object;

impl Recording {
    /// Nothing more will come. Code that was made at run time may have been replaced: each sample's places get those of
    /// its own time.
    pub fn finish(&mut self) {
        self.add_waiting();
        self.objects.jit_code.read_jitdumps();
        let mut reused = FxHashMap::default();
        for index in 0..self.kept.len() {
            let Kept { stamp, period, stack } = self.kept[index];
            let mut ids = self.stacks.get(stack).to_vec();
            let mut differs = false;
            for id in &mut ids[HEAD..] {
                let location = self.locations.all()[*id as usize];
                let Object::Jit { pid, .. } = self.objects.get(location.object) else { continue };
                let Some(dump) = self.objects.jit_code.jitdump(*pid) else { continue };
                if *reused.entry(*id).or_insert_with(|| dump.is_reused(location.address))
                    && let Some(function) = dump.find(location.address, stamp.time)
                {
                    *id = self.locations.intern(Location { since: function.loaded_at, ..location });
                    differs = true;
                }
            }
            if differs {
                let old = &mut self.tallies[stack as usize];
                old.samples -= 1;
                old.period -= u128::from(period);
                let number = self.stacks.intern(&ids);
                self.add(number, (1, period));
                self.kept[index].stack = number;
            }
        }
    }
}
