// Dates, times and durations as ISO 8601 writes them. Pure functions; any thread.
use std::fmt::Write;

const DAY: i64 = 86_400;
// Days from 1970-01-01 to 0001-01-01 and to the day after 9999-12-31.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

#[derive(Clone, Copy)]
pub enum Unit {
    Second,
    Milli,
    Micro,
    Nano,
}

impl Unit {
    fn per_second(self) -> i64 {
        match self {
            Unit::Second => 1,
            Unit::Milli => 1_000,
            Unit::Micro => 1_000_000,
            Unit::Nano => 1_000_000_000,
        }
    }

    // Whole seconds, rounded down, and the nanoseconds that remain.
    fn split(self, value: i64) -> (i64, u32) {
        let per = self.per_second();
        let nanos = value.rem_euclid(per) * (1_000_000_000 / per);
        (value.div_euclid(per), nanos as u32)
    }
}

// None outside the years 1 to 9999, which ISO 8601 writes with four digits.
pub fn date(days: i64) -> Option<String> {
    if !(FIRST_DAY..LAST_DAY + 1).contains(&days) {
        return None;
    }
    // Eras of 400 years, each beginning on the first of March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

// Milliseconds, microseconds or nanoseconds, whichever are enough; nothing for a whole second.
fn fraction(nanos: u32, text: &mut String) {
    let _ = match nanos {
        0 => Ok(()),
        _ if nanos % 1_000_000 == 0 => write!(text, ".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => write!(text, ".{:06}", nanos / 1_000),
        _ => write!(text, ".{nanos:09}"),
    };
}

fn clock(second: i64, nanos: u32, text: &mut String) {
    let _ = write!(text, "{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    fraction(nanos, text);
}

// None for what is no time of a day.
pub fn time(value: i64, unit: Unit) -> Option<String> {
    let (seconds, nanos) = unit.split(value);
    if !(0..DAY).contains(&seconds) {
        return None;
    }
    let mut text = String::new();
    clock(seconds, nanos, &mut text);
    Some(text)
}

// `is_zoned`: the value counts from 1970 in UTC, and the text says so; else it is local time.
pub fn timestamp(value: i64, unit: Unit, is_zoned: bool) -> Option<String> {
    let (seconds, nanos) = unit.split(value);
    let mut text = date(seconds.div_euclid(DAY))?;
    text.push('T');
    clock(seconds.rem_euclid(DAY), nanos, &mut text);
    if is_zoned {
        text.push('Z');
    }
    Some(text)
}

pub fn duration(value: i64, unit: Unit) -> String {
    let per = unit.per_second().unsigned_abs();
    let seconds = value.unsigned_abs() / per;
    let nanos = (value.unsigned_abs() % per) * (1_000_000_000 / per);
    let mut text = format!("{}PT{seconds}", if value < 0 { "-" } else { "" });
    fraction(nanos as u32, &mut text);
    text.push('S');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
        assert_eq!(date(11_016).as_deref(), Some("2000-02-29"));
        assert_eq!(date(-1).as_deref(), Some("1969-12-31"));
        assert_eq!(date(FIRST_DAY).as_deref(), Some("0001-01-01"));
        assert_eq!(date(LAST_DAY).as_deref(), Some("9999-12-31"));
        assert_eq!(date(FIRST_DAY - 1), None);
        assert_eq!(date(LAST_DAY + 1), None);
    }

    #[test]
    fn fractions_have_the_digits_they_need() {
        assert_eq!(timestamp(-1, Unit::Milli, false).as_deref(), Some("1969-12-31T23:59:59.999"));
        assert_eq!(
            timestamp(1_500_000, Unit::Micro, true).as_deref(),
            Some("1970-01-01T00:00:01.500Z")
        );
        assert_eq!(time(86_399, Unit::Second).as_deref(), Some("23:59:59"));
        assert_eq!(time(86_400, Unit::Second), None);
        assert_eq!(duration(-1_500, Unit::Milli), "-PT1.500S");
        assert_eq!(duration(7, Unit::Nano), "PT0.000000007S");
    }
}
