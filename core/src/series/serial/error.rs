//! Errors of templates and periods.

use super::field::{DateField, MAX_FORMAT_BYTES, MAX_WIDTH, Reset};
use crate::error::{Explain, Kind};

/// Reason why a template or a period is refused.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A period that is not one of [`Reset::ALL`].
    #[error("unrecognized reset \"{name}\"")]
    UnknownReset { name: String },
    /// More bytes than [`MAX_FORMAT_BYTES`].
    #[error("format is too long")]
    TooLong { bytes: usize },
    /// A brace without its partner.
    #[error("format has an unbalanced brace at position {at}")]
    Brace { at: usize },
    /// A field that no template has.
    #[error("unrecognized field \"{{{field}}}\" in format")]
    UnknownField { field: String },
    /// A number of digits that is not 1 to 19.
    #[error("width \"{width}\" of the number in format is not valid")]
    Width { width: String },
    /// No number, or more than one.
    #[error("format must have the number exactly once")]
    Number { count: usize },
    /// A date in the keys of a tag that never starts anew.
    #[error("format has the date field \"{{{field}}}\", but there is no reset")]
    WithoutReset { field: &'static str },
    /// A date field that changes within a period.
    #[error("format has the date field \"{{{field}}}\", but numbers start anew each {reset}")]
    TooFine { field: &'static str, reset: Reset },
    /// Keys of different periods would be the same.
    #[error("format lacks the {missing}, but numbers start anew each {reset}")]
    Missing { missing: Reset, reset: Reset },
}

impl Explain for FormatError {
    fn kind(&self) -> Kind {
        Kind::BadArgument
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::UnknownReset { .. } => "Numbers start anew each day, month or year, or never.".into(),
            Self::TooLong { bytes } => {
                format!("It has {bytes} bytes; a format has at most {MAX_FORMAT_BYTES}.")
            }
            Self::Brace { .. } => "A field stands between braces, and a brace itself is doubled.".into(),
            Self::UnknownField { .. } => format!("Fields are {}, {{n}} and {{n:width}}.", date_fields()),
            Self::Width { .. } => format!("The number has at least 1 to {MAX_WIDTH} digits."),
            Self::Number { count: 0 } => "It has none, so all keys would be the same.".into(),
            Self::Number { count } => format!("It has it {count} times."),
            Self::WithoutReset { .. } => "Its numbers belong to no date.".into(),
            Self::TooFine { reset, .. } => format!("Within one {reset}, the date in a key does not change."),
            Self::Missing { reset, .. } => {
                format!("The numbers are the same each {reset}, so keys would come twice.")
            }
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownReset { .. } => {
                format!("Set reset to {}, or to null.", Reset::ALL.map(Reset::name).join(", "))
            }
            Self::TooLong { .. } => "Shorten the text around the fields.".into(),
            Self::Brace { .. } => "Write {{ for { and }} for }.".into(),
            Self::UnknownField { .. } => "Write fields as listed, in the same case.".into(),
            Self::Width { .. } => "Write {n:6} for six digits, or {n} for as many as the number has.".into(),
            Self::Number { .. } => "Write {n} once, or {n:6} for six digits.".into(),
            Self::WithoutReset { .. } => "Set reset, or leave the date fields out of format.".into(),
            Self::TooFine { field, .. } => format!("Leave {{{field}}} out, or choose a shorter reset."),
            Self::Missing { missing, .. } => format!("Add {}.", fields_for(*missing)),
        })
    }
}

fn date_fields() -> String {
    DateField::ALL.map(|field| format!("{{{}}}", field.name())).join(", ")
}

/// The fields that tell one such period from the next.
fn fields_for(period: Reset) -> String {
    let fields = DateField::ALL.into_iter().filter(|field| field.period() == period);
    fields.map(|field| format!("{{{}}}", field.name())).collect::<Vec<_>>().join(" or ")
}
