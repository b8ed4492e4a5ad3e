//! The costs of traces, which are updated with each allocation and deallocation.

use std::collections::BTreeMap;

/// The costs of all traces.
#[derive(Debug, Default)]
pub(super) struct Costs {
    traces: BTreeMap<usize, Cost>,
    in_use: u64,
    peak: u64,
    /// The number of the last peak.
    peaks: u64,
    /// The last allocation, if nothing was freed after it.
    last: Option<(u64, usize)>,
}

#[derive(Debug, Default)]
struct Cost {
    allocations: u64,
    temporary: u64,
    in_use: u64,
    /// The bytes that were in use at the peak with the number `saved`. At any later peak they were `in_use`.
    at_peak: u64,
    /// The number of the peak to which `at_peak` belongs.
    saved: u64,
}

impl Costs {
    pub(super) fn allocate(&mut self, size: u64, trace: usize) {
        let cost = Self::change(&mut self.traces, self.peaks, trace);
        cost.allocations += 1;
        cost.in_use = cost.in_use.saturating_add(size);
        self.in_use = self.in_use.saturating_add(size);
        self.last = Some((size, trace));
        if self.in_use > self.peak {
            self.peak = self.in_use;
            // Whatever was saved belongs to a peak before this one.
            self.peaks += 1;
        }
    }

    pub(super) fn free(&mut self, size: u64, trace: usize) {
        let cost = Self::change(&mut self.traces, self.peaks, trace);
        cost.temporary += u64::from(self.last == Some((size, trace)));
        cost.in_use = cost.in_use.saturating_sub(size);
        self.in_use = self.in_use.saturating_sub(size);
        self.last = None;
    }

    /// Returns the cost of a trace, which is about to change, after saving its value at the last peak.
    fn change(traces: &mut BTreeMap<usize, Cost>, peaks: u64, trace: usize) -> &mut Cost {
        let cost = traces.entry(trace).or_default();
        if cost.saved != peaks {
            (cost.at_peak, cost.saved) = (cost.in_use, peaks);
        }
        cost
    }

    /// Returns one value of all traces: bytes at the peak (0), allocations (1), temporary ones (2), or bytes in use (3).
    pub(super) fn values(&self, value: usize) -> impl Iterator<Item = (usize, u64)> {
        self.traces.iter().map(move |(trace, cost)| {
            let at_peak = if cost.saved == self.peaks { cost.at_peak } else { cost.in_use };
            (*trace, [at_peak, cost.allocations, cost.temporary, cost.in_use][value])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Costs;

    #[test]
    fn keeps_the_values_at_the_peak() {
        let mut costs = Costs::default();
        costs.allocate(10, 1);
        costs.allocate(5, 2);
        costs.free(5, 2);
        costs.allocate(3, 3);
        costs.allocate(4, 2);
        costs.free(10, 1);
        costs.allocate(2, 2);
        // The second of two deallocations in a row is not that of a temporary allocation, whatever its kind.
        costs.allocate(1, 3);
        costs.free(1, 3);
        costs.free(3, 3);
        costs.allocate(3, 3);
        let values = [0, 1, 2, 3].map(|value| costs.values(value).map(|(_, value)| value).collect::<Vec<_>>());
        assert_eq!(values, [[10, 4, 3], [1, 3, 3], [0, 1, 1], [0, 6, 3]]);
    }
}
