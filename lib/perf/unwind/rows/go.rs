//! Rows of Go functions.

use super::{Functions, kind, rule};
use crate::perf::unwind::go::{GoRule, GoUnwindInfo, GoroutineOffsets};

impl Functions<'_> {
    /// Adds the functions of a Go program.
    pub(super) fn read_go(&mut self, go: &GoUnwindInfo) {
        go.for_each_function(|range, changes| {
            if !self.is_in_code(&range) {
                return;
            }
            let first = self.changes.len();
            for (address, go_rule) in changes {
                self.push(*address, encode(*go_rule, go.goroutine));
            }
            self.ranges.push((range, first..self.changes.len()));
        });
    }
}

/// Returns a rule as the BPF program reads it; 0 if it cannot be expressed.
fn encode(go_rule: GoRule, goroutine: Option<GoroutineOffsets>) -> u64 {
    match go_rule {
        GoRule::Unknown | GoRule::Popped(_) => 0,
        GoRule::Root => rule(kind::ROOT, 0, 0),
        GoRule::StackPointer(offset) => rule(kind::GO, offset, 0),
        GoRule::Callback(offset) => rule(kind::GO_CALLBACK, offset, 0),
        GoRule::FramePointer => rule(kind::FRAME_POINTER, 16, -2),
        GoRule::SavedStackPointer(offset) => encode_on_goroutine(kind::GOROUTINE, goroutine, offset),
        GoRule::Resumed => encode_on_goroutine(kind::RESUMED, goroutine, 0),
    }
}

/// Returns a rule that reads the current goroutine, whose offset is in the lower half of the CFA's offset; 0 if it cannot be
/// expressed.
fn encode_on_goroutine(kind: u64, goroutine: Option<GoroutineOffsets>, offset: u32) -> u64 {
    match (goroutine, u16::try_from(offset)) {
        (Some(GoroutineOffsets { thread_storage, current }), Ok(offset)) => {
            rule(kind, u32::from(offset) << 16 | u32::from(current), thread_storage)
        }
        _ => 0,
    }
}
