//! The instants at which a dated tag starts anew.

use super::error::FormatError;
use super::field::{DateField, Reset};
use super::template::{Format, Part};
use crate::error::excerpt;
use std::str::FromStr;

impl Reset {
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
