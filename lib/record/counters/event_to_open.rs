//! The counters of each event that are opened on a CPU.

use std::time::Duration;

use perf_event_open::config::{Opts, SampleOn};

use super::SampleWeight;
use super::attr;
use super::clock_parts;
use super::sampling::{Rate, SampledEvent, Sampling};
use crate::record::errors;
use crate::record::events::spec::EventSpec;
use crate::record::target::Target;

/// A counter of an event that is opened on each CPU, or in each thread.
pub(super) struct EventToOpen<'a> {
    pub(super) spec: &'a EventSpec,
    /// The event's index.
    pub(super) index: usize,
    pub(super) options: Opts,
    /// True if its counters count on CPUs, for whichever thread runs there.
    pub(super) on_cpus: bool,
    /// The time before the start at which it is enabled.
    pub(super) lead: Duration,
}

impl<'a> EventToOpen<'a> {
    /// Lists the counters of all events.
    pub(super) fn list(
        target: &Target,
        sampling: &'a Sampling,
        exclude_kernel: bool,
        stack_copy: Option<u32>,
    ) -> Vec<Self> {
        let counters = sampling.events.iter().enumerate().flat_map(|(index, event)| {
            let options = attr::sample_options(target, sampling, event, exclude_kernel, stack_copy);
            let on_cpus = sampling.counts_on_cpus(target, event);
            let whole = Self { spec: &event.spec, index, options, on_cpus, lead: Duration::ZERO };
            let Some(interval) = interval_to_divide(target, sampling, event) else { return vec![whole] };
            let parts = clock_parts::divide(interval).into_iter().map(|part| {
                let options = Opts { sample_on: SampleOn::Count(part.period), ..whole.options.clone() };
                Self { spec: whole.spec, index, options, on_cpus, lead: part.lead }
            });
            parts.collect()
        });
        counters.collect()
    }
}

/// Returns the weight of a sample of each event.
pub(super) fn sample_weights(target: &Target, sampling: &Sampling) -> Vec<SampleWeight> {
    let weights = sampling.events.iter().map(|event| {
        let interval = interval_to_divide(target, sampling, event);
        SampleWeight {
            period: event.rate.period().or(interval),
            value: event.spec.value.clone(),
            is_divided: interval.is_some(),
        }
    });
    weights.collect()
}

/// Returns the time between samples of an event in nanoseconds, if several counters of each CPU are to take them.
fn interval_to_divide(target: &Target, sampling: &Sampling, event: &SampledEvent) -> Option<u64> {
    let interval = match event.rate {
        Rate::Period(nanoseconds) => nanoseconds,
        Rate::Frequency(hertz) => 1_000_000_000 / hertz.max(1),
    };
    // The kernel limits the rate of each counter, not that of several together.
    let is_permitted = 1_000_000_000 / interval.max(1) <= errors::max_sample_rate();
    // The timers of a cgroup's counters stop while other threads run, as those of threads do.
    let runs_always = sampling.counts_on_cpus(target, event) && !matches!(target, Target::Cgroup(_));
    let is_divided = event.spec.is_clock() && runs_always;
    Some(interval).filter(|interval| is_divided && is_permitted && *interval <= clock_parts::MAX_INTERVAL)
}
