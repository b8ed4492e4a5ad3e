//! Symbolizes all locations of a recording: each location once, each object once, on all cores.

use std::cmp::Reverse;
use std::ops::Range;

use super::frame::{AddressFrames, FrameRange, NamedFrame, SymbolizeOptions};
use super::{elf, kallsyms};
use crate::parallel::{self, cores};
use crate::perf::location::Location;
use crate::perf::objects::object::{Object, ObjectId};
use crate::perf::objects::registry::Objects;
use crate::perf::runtimes::functions::ScriptFrames;

/// The frames of all locations of a recording.
#[derive(Debug, Default)]
pub struct LocationFrames {
    frames: Vec<NamedFrame>,
    /// The range of each location's frames, by location number.
    ranges: Vec<FrameRange>,
    warnings: Vec<String>,
}

impl LocationFrames {
    /// Returns all frames.
    pub fn frames(&self) -> &[NamedFrame] {
        &self.frames
    }

    /// Returns the range of a location's frames in [`frames`](Self::frames), outermost first.
    ///
    /// A location has several frames if calls were inlined there. Locations in the same function may share a range.
    pub fn range(&self, location: u32) -> Range<usize> {
        let range = &self.ranges[location as usize];
        range.start as usize..range.end as usize
    }

    /// Returns messages that explain missing names.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The locations of one object, which one thread symbolizes.
struct Job {
    object: ObjectId,
    /// Location numbers, in ascending order of their addresses.
    locations: Vec<u32>,
}

/// Finds the frames of all locations.
pub fn symbolize(objects: &Objects, locations: &[Location], options: &SymbolizeOptions) -> LocationFrames {
    let jobs = group_by_object(objects, locations);
    let results = parallel::map(&jobs, cores(), |job| {
        let locations: Vec<Location> = job.locations.iter().map(|number| locations[*number as usize]).collect();
        symbolize_object(objects, job.object, &locations, options)
    });
    let mut all = LocationFrames { ranges: vec![0..0; locations.len()], ..LocationFrames::default() };
    for (job, (found, warnings)) in jobs.iter().zip(results) {
        let offset = u32::try_from(all.frames.len()).expect("fewer than 2^32 frames");
        for (location, range) in job.locations.iter().zip(found.ranges) {
            all.ranges[*location as usize] = offset + range.start..offset + range.end;
        }
        all.frames.extend(found.frames);
        // Several objects may have the same one: the code of a process in memory of several kinds.
        for warning in warnings {
            if !all.warnings.contains(&warning) {
                all.warnings.push(warning);
            }
        }
    }
    all
}

/// Groups locations by object, the object with most locations first.
fn group_by_object(objects: &Objects, locations: &[Location]) -> Vec<Job> {
    let mut jobs: Vec<Job> = objects.iter().map(|(object, _)| Job { object, locations: Vec::new() }).collect();
    for (number, location) in locations.iter().enumerate() {
        jobs[location.object.index()].locations.push(number as u32);
    }
    jobs.retain(|job| !job.locations.is_empty());
    jobs.sort_by_key(|job| Reverse(job.locations.len()));
    for job in &mut jobs {
        // In address order, each unit of debug information is visited once.
        job.locations.sort_unstable_by_key(|number| locations[*number as usize].address);
    }
    jobs
}

/// Returns the frames of the locations of one object, and warnings. The locations must be in ascending order of
/// address.
fn symbolize_object(
    objects: &Objects,
    object: ObjectId,
    locations: &[Location],
    options: &SymbolizeOptions,
) -> (AddressFrames, Vec<String>) {
    let object = objects.get(object);
    let addresses: Vec<u64> = locations.iter().map(|location| location.address).collect();
    let (mut frames, warnings) = match object {
        Object::Unknown | Object::Missing { .. } => (AddressFrames::without_frames(addresses.len()), Vec::new()),
        Object::Script => (find_script_frames(&objects.script_frames, &addresses), Vec::new()),
        Object::Kernel => kallsyms::find_frames(&objects.kernel, addresses),
        Object::Jit { pid, .. } => objects.jit_code.find_frames(*pid, locations, options.lines),
        Object::Elf(elf) => elf::find_frames(elf, &addresses, options),
    };
    if let Object::Elf(elf) = object {
        // Symbols and debug information take many times the memory of the code that ran.
        elf.bytes().release();
    }
    frames.fill_missing(NamedFrame::without_symbol(object.frame_without_symbol()));
    (frames, warnings)
}

/// Returns the frames of script functions by their numbers.
fn find_script_frames(names: &ScriptFrames, numbers: &[u64]) -> AddressFrames {
    let mut frames = AddressFrames::default();
    numbers.iter().for_each(|number| frames.push(names.get(*number).cloned().into_iter().collect()));
    frames
}
