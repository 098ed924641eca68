//! The date fields of a template, and the periods that they distinguish.

use std::fmt;

/// The longest template, in bytes.
pub const MAX_FORMAT_BYTES: usize = 64;
pub(super) const MAX_WIDTH: u8 = 19;

/// A part of a period's first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateField {
    Year,
    YearOfCentury,
    Month,
    Day,
}

impl DateField {
    pub(super) const ALL: [Self; 4] = [Self::Year, Self::YearOfCentury, Self::Month, Self::Day];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Year => "YYYY",
            Self::YearOfCentury => "YY",
            Self::Month => "MM",
            Self::Day => "DD",
        }
    }

    /// Returns the period that the field shows: a month for `MM`.
    pub(super) const fn period(self) -> Reset {
        match self {
            Self::Year | Self::YearOfCentury => Reset::Year,
            Self::Month => Reset::Month,
            Self::Day => Reset::Day,
        }
    }
}

/// The period after which a tag starts over. Longer periods are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reset {
    /// The tag starts over each day.
    Day,
    /// The tag starts over each month.
    Month,
    /// The tag starts over each year.
    Year,
}

impl Reset {
    /// All periods, the shortest first.
    pub const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Year];

    /// Returns the period's name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
