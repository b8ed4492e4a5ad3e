//! Selects blocks by the functions in their stacks.

use regex::bytes::Regex;
use rustc_hash::FxHashMap;

use crate::perf::location::Location;
use crate::perf::recording::Recording;
use crate::perf::symbols::frame::SymbolizeOptions;
use crate::perf::symbols::symbolize::symbolize;

/// Finds functions that match a pattern in stacks, while the recording goes on.
///
/// A location is named when a long block is at it for the first time. That takes as long as reading the symbols of its object.
#[derive(Debug)]
pub struct FunctionFilter {
    pattern: Regex,
    /// The locations of earlier stacks, and whether they are in functions that match.
    known: FxHashMap<Location, bool>,
}

impl FunctionFilter {
    /// Creates a filter for a pattern.
    pub fn new(pattern: Regex) -> Self {
        Self { pattern, known: FxHashMap::default() }
    }

    /// True if a function in a stack matches.
    pub fn is_match(&mut self, recording: &Recording, stack: u32) -> bool {
        let locations = recording.stack(stack).locations.iter();
        let locations: Vec<Location> = locations.map(|id| recording.locations()[*id as usize]).collect();
        let new = locations.iter().filter(|location| !self.known.contains_key(location));
        self.name(recording, &new.copied().collect::<Vec<_>>());
        locations.iter().any(|location| self.known.get(location) == Some(&true))
    }

    fn name(&mut self, recording: &Recording, locations: &[Location]) {
        if locations.is_empty() {
            return;
        }
        let options = SymbolizeOptions { inline: true, ..SymbolizeOptions::default() };
        let names = symbolize(&recording.objects, locations, &options);
        for (number, location) in locations.iter().enumerate() {
            let frames = &names.frames()[names.range(number as u32)];
            let is_match = frames.iter().any(|frame| self.pattern.is_match(&frame.name));
            self.known.insert(*location, is_match);
        }
    }
}
