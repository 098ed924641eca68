//! Errors of templates and periods.

use super::field::{DateField, MAX_FORMAT_BYTES, MAX_WIDTH, Reset};
use crate::error::Explain;

/// Reason why a template or a period is refused.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum FormatError {
    #[error("unrecognized reset \"{name}\"")]
    #[explain(detail = "Numbers start anew each day, month or year, or never.")]
    #[explain(hint = "Set reset to {}, or to null.", Reset::ALL.map(Reset::name).join(", "))]
    UnknownReset { name: String },
    #[error("format is too long")]
    #[explain(detail = "It has {bytes} bytes; a format has at most {MAX_FORMAT_BYTES}.")]
    #[explain(hint = "Shorten the text around the fields.")]
    TooLong { bytes: usize },
    #[error("format has an unbalanced brace at position {at}")]
    #[explain(detail = "Fields are written in braces, and a literal brace is doubled.")]
    #[explain(hint = "Write {{{{ for {{ and }}}} for }}.")]
    Brace { at: usize },
    #[error("unrecognized field \"{{{field}}}\" in format")]
    #[explain(detail = "Fields are {}, {{n}} and {{n:width}}.", date_fields())]
    #[explain(hint = "Use one of the listed fields, in the same case.")]
    UnknownField { field: String },
    #[error("width \"{width}\" of the number in format is not valid")]
    #[explain(detail = "The width must be 1 to {MAX_WIDTH} digits.")]
    #[explain(hint = "Write {{n:6}} for six digits, or {{n}} for as many as the number has.")]
    Width { width: String },
    #[error("format must have the number exactly once")]
    #[explain(hint = "Write {{n}} once, or {{n:6}} for six digits.", detail_with = match *count {
        0 => "Without the number, all formatted numbers would be the same.".to_owned(),
        _ => format!("It has the number {count} times."),
    })]
    Number { count: usize },
    #[error("format has the date field \"{{{field}}}\", but there is no reset")]
    #[explain(detail = "Without a reset, numbers belong to no date.")]
    #[explain(hint = "Set reset, or leave the date fields out of format.")]
    WithoutReset { field: &'static str },
    /// The date field changes within a period.
    #[error("format has the date field \"{{{field}}}\", but numbers start anew each {reset}")]
    #[explain(
        detail = "Date fields show the first day of the {reset}, so {{{field}}} would not change within it."
    )]
    #[explain(hint = "Leave {{{field}}} out, or choose a shorter reset.")]
    TooFine { field: &'static str, reset: Reset },
    /// Numbers of different periods would have the same text.
    #[error("format lacks the {missing}, but numbers start anew each {reset}")]
    #[explain(detail = "Each {reset} has the same numbers, so formatted numbers would repeat.")]
    #[explain(hint = "Add {}.", fields_for(*missing))]
    Missing { missing: Reset, reset: Reset },
}

fn date_fields() -> String {
    DateField::ALL.map(|field| format!("{{{}}}", field.name())).join(", ")
}

fn fields_for(period: Reset) -> String {
    let fields = DateField::ALL.into_iter().filter(|field| field.period() == period);
    fields.map(|field| format!("{{{}}}", field.name())).collect::<Vec<_>>().join(" or ")
}
