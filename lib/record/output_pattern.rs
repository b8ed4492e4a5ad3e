//! Names of output files: a pattern such as `app-%e-%t.folded` names a file for each event and time.

use std::path::{Path, PathBuf};

/// Placeholders in a pattern.
const TIME: &str = "%t";
const EVENT: &str = "%e";

/// True if the pattern names a file for each time.
pub fn has_time(pattern: &Path) -> bool {
    pattern.to_string_lossy().contains(TIME)
}

/// True if the pattern names a file for each event.
pub fn has_event(pattern: &Path) -> bool {
    pattern.to_string_lossy().contains(EVENT)
}

/// Returns the file for an event and a time, in seconds since 1970.
pub fn expand(pattern: &Path, event: &str, time: u64) -> PathBuf {
    let event = event.replace(['/', ':'], "-");
    PathBuf::from(pattern.to_string_lossy().replace(EVENT, &event).replace(TIME, &format_time(time)))
}

/// Formats a time as in `20261121T025700Z`, which sorts by time.
fn format_time(time: u64) -> String {
    let (days, seconds) = (time / 86400, time % 86400);
    // The civil-from-days algorithm: 400 years always have the same number of days, and if years begin in March, the
    // leap day is the last one.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{expand, format_time};

    #[test]
    fn formats_calendar_times() {
        for (time, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_709_251_200, "20240301T000000Z"),
            (4_102_444_799, "20991231T235959Z"),
        ] {
            assert_eq!(format_time(time), text);
        }
    }

    #[test]
    fn expands_event_and_time() {
        let path = expand(Path::new("a/%e-%t.folded"), "sched:sched_switch", 0);
        assert_eq!(path, Path::new("a/sched-sched_switch-19700101T000000Z.folded"));
    }
}
