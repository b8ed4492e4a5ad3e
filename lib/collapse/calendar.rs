//! Counts days of the Gregorian calendar.

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
pub(super) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that a leap day is the last day of a year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::days_since_1970;

    #[test]
    fn counts_days_of_the_calendar() {
        assert_eq!((days_since_1970(1970, 1, 1), days_since_1970(1970, 3, 1)), (0, 59));
        assert_eq!((days_since_1970(2000, 2, 29), days_since_1970(2026, 11, 24)), (11_016, 20_781));
    }
}
