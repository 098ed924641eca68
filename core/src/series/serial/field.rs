//! The fields of a template: the parts of a date, and the periods that they tell apart.

use std::fmt;

/// The longest template, in bytes.
pub const MAX_FORMAT_BYTES: usize = 64;
/// The digits of the largest number.
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

    /// The longest period that the field tells from the next.
    pub(super) const fn period(self) -> Reset {
        match self {
            Self::Year | Self::YearOfCentury => Reset::Year,
            Self::Month => Reset::Month,
            Self::Day => Reset::Day,
        }
    }
}

/// The period after which a tag's count starts anew. A longer period is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reset {
    /// Each day.
    Day,
    /// Each month.
    Month,
    /// Each year.
    Year,
}

impl Reset {
    /// Every period, the shortest first.
    pub const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Year];

    /// The name by which SQL asks for it.
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
