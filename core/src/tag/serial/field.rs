//! The date fields of a template, and the periods that they distinguish.

use crate::named_enum::named_enum;

/// The longest template, in bytes.
pub const MAX_FORMAT_BYTES: usize = 64;
pub(super) const MAX_WIDTH: u8 = 19;

named_enum! {
    /// A part of a period's first day.
    pub(crate) enum DateField {
        Year = "YYYY",
        YearOfCentury = "YY",
        Month = "MM",
        Day = "DD",
    }
}

impl DateField {
    /// Returns the period that the field shows: a month for `MM`.
    pub(super) const fn period(self) -> Reset {
        match self {
            Self::Year | Self::YearOfCentury => Reset::Year,
            Self::Month => Reset::Month,
            Self::Day => Reset::Day,
        }
    }
}

named_enum! {
    /// The period after which a tag starts over, with its name in SQL. Longer periods are greater.
    #[derive(PartialOrd, Ord)]
    pub enum Reset {
        /// The tag starts over each day.
        Day = "day",
        /// The tag starts over each month.
        Month = "month",
        /// The tag starts over each year.
        Year = "year",
    }
}
