//! When a dated tag starts anew.

use super::{DateField, Format, FormatError, Part};
use crate::error::excerpt;
use std::fmt;
use std::str::FromStr;

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

    /// The template of a tag that names none: the date as far as the period needs it and six digits, as in
    /// `{YYYY}{MM}{DD}-{n:6}`.
    pub fn default_format(self) -> Format {
        let dates = [DateField::Year, DateField::Month, DateField::Day];
        let dates = dates.into_iter().filter(|field| field.period() >= self).map(Part::Date);
        Format { parts: dates.chain([Part::Literal("-".to_owned()), Part::Number(6)]).collect() }
    }
}

impl FromStr for Reset {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let named = Self::ALL.into_iter().find(|reset| reset.name().eq_ignore_ascii_case(text));
        named.ok_or_else(|| FormatError::UnknownReset { name: excerpt(text) })
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
