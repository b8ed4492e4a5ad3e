//! Lists of CPUs: those that are online, and those that `-C` names.

use std::ops::RangeInclusive;

/// CPU numbers from here on are rejected: no machine has as many CPUs.
const MAX_CPUS: u32 = 1 << 16;

/// The CPUs that a list such as `0-3,8` names.
#[derive(Clone, Debug)]
pub struct CpuList(pub Vec<u32>);

impl std::str::FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_cpu_list(text).map(Self).ok_or_else(|| "expected a list of CPUs, such as 0-3,8".to_owned())
    }
}

/// Returns the CPUs that are online.
pub fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpu_list(&text).unwrap_or_default();
    if cpus.is_empty() {
        (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect()
    } else {
        cpus
    }
}

/// Parses a list such as `0-3,8,10-11`; `None` if it is malformed.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let ranges: Option<Vec<_>> = text.trim().split(',').map(parse_range).collect();
    ranges.map(|ranges| ranges.into_iter().flatten().collect())
}

fn parse_range(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok()?..=last.parse().ok().filter(|last| *last < MAX_CPUS)?;
    Some(range).filter(|range| !range.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn parses_lists_of_cpus() {
        assert_eq!(super::parse_cpu_list("0-2,5\n").unwrap(), [0, 1, 2, 5]);
        for wrong in ["\n", "a", "1,", "0-4294967295", "-1", "1-0", "0,3-2"] {
            assert_eq!(super::parse_cpu_list(wrong), None, "{wrong}");
        }
    }
}
