//! A template: its text, and the numbers that it renders as text.

use super::error::FormatError;
use super::field::{DateField, MAX_FORMAT_BYTES, MAX_WIDTH, Reset};
use crate::error::excerpt;
use jiff::{SignedDuration, civil};
use std::fmt;
use std::str::FromStr;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberFormat {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Date(DateField),
    /// The number, with at least this many digits.
    Number(u8),
}

impl NumberFormat {
    /// Parses a template for a tag that starts over each period, or never.
    pub fn parse(text: &str, reset: Option<Reset>) -> Result<Self, FormatError> {
        if text.len() > MAX_FORMAT_BYTES {
            return Err(FormatError::TooLong { bytes: text.len() });
        }
        let format = Self { parts: parse_parts(text)? };
        match format.parts.iter().filter(|part| matches!(part, Part::Number(_))).count() {
            1 => format.check_dates(reset).map(|()| format),
            count => Err(FormatError::Number { count }),
        }
    }

    /// Returns the default template. Without a reset, the template is `{n}`. With a reset, the template has the date
    /// fields down to the period, and at least six digits, as in `{YYYY}{MM}{DD}-{n:6}`.
    pub fn default_for(reset: Option<Reset>) -> Self {
        let Some(reset) = reset else { return Self { parts: vec![Part::Number(1)] } };
        let dates = [DateField::Year, DateField::Month, DateField::Day];
        let dates = dates.into_iter().filter(|field| field.period() >= reset).map(Part::Date);
        Self { parts: dates.chain([Part::Literal("-".to_owned()), Part::Number(6)]).collect() }
    }

    /// Renders a number. `day` is the first day of the number's period, in days since 1970-01-01, and is only used by
    /// date fields. Days outside the years -9999 to 9999 count as the nearest day of these years.
    pub fn render(&self, day: i32, n: i64) -> String {
        let date = civil::date(1970, 1, 1).saturating_add(SignedDuration::from_hours(24 * i64::from(day)));
        self.parts.iter().map(|part| part.render(date, n)).collect()
    }

    fn dates(&self) -> impl Iterator<Item = DateField> {
        self.parts.iter().filter_map(|part| match part {
            Part::Date(field) => Some(*field),
            _ => None,
        })
    }

    /// Checks that the date fields contain the period, and no finer date.
    fn check_dates(&self, reset: Option<Reset>) -> Result<(), FormatError> {
        let Some(reset) = reset else {
            let first = self.dates().next();
            return first.map_or(Ok(()), |field| Err(FormatError::WithoutReset { field: field.name() }));
        };
        if let Some(field) = self.dates().find(|field| field.period() < reset) {
            return Err(FormatError::TooFine { field: field.name(), reset });
        }
        let told = |period| self.dates().any(|field| field.period() == period);
        let needed = Reset::ALL.into_iter().filter(|period| *period >= reset);
        match needed.rev().find(|period| !told(*period)) {
            Some(missing) => Err(FormatError::Missing { missing, reset }),
            None => Ok(()),
        }
    }
}

impl Part {
    fn parse(field: &str) -> Result<Self, FormatError> {
        let unknown = || FormatError::UnknownField { field: excerpt(field) };
        match field.split_once(':') {
            Some(("n", width)) => parse_width(width).map(Self::Number),
            Some(_) => Err(unknown()),
            None if field == "n" => Ok(Self::Number(1)),
            None => DateField::named(field).map(Self::Date).ok_or_else(unknown),
        }
    }

    fn render(&self, date: civil::Date, n: i64) -> String {
        match self {
            Self::Literal(text) => text.clone(),
            Self::Date(DateField::Year) => format!("{:04}", date.year()),
            Self::Date(DateField::YearOfCentury) => format!("{:02}", date.year().rem_euclid(100)),
            Self::Date(DateField::Month) => format!("{:02}", date.month()),
            Self::Date(DateField::Day) => format!("{:02}", date.day()),
            Self::Number(width) => format!("{n:0width$}", width = usize::from(*width)),
        }
    }
}

fn parse_parts(text: &str) -> Result<Vec<Part>, FormatError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, brace)) = rest.find(['{', '}']).and_then(|at| rest.split_at_checked(at)) {
        push_literal(&mut parts, literal);
        rest = if let Some(rest) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
            push_literal(&mut parts, &brace[..1]);
            rest
        } else {
            let (field, rest) = split_field(brace).ok_or_else(|| FormatError::Brace {
                // The position counts characters, not bytes.
                at: text[..text.len() - brace.len()].chars().count() + 1,
            })?;
            parts.push(Part::parse(field)?);
            rest
        };
    }
    push_literal(&mut parts, rest);
    Ok(parts)
}

/// Splits `{field}rest`. Returns None if the text begins with a closing brace, or if the opening brace is never closed
/// or is followed by another opening brace.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let (field, rest) = text.strip_prefix('{')?.split_once('}')?;
    (!field.contains('{')).then_some((field, rest))
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Literal(text.to_owned()));
    }
}

fn parse_width(text: &str) -> Result<u8, FormatError> {
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let width = digits.and_then(|digits| digits.parse().ok()).filter(|width| (1..=MAX_WIDTH).contains(width));
    width.ok_or_else(|| FormatError::Width { width: excerpt(text) })
}

/// Writes the template's text.
impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Literal(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Part::Date(field) => write!(f, "{{{}}}", field.name()),
            Part::Number(1) => f.write_str("{n}"),
            Part::Number(width) => write!(f, "{{n:{width}}}"),
        })
    }
}

impl FromStr for Reset {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let named = Self::ALL.into_iter().find(|reset| reset.name().eq_ignore_ascii_case(text));
        named.ok_or_else(|| FormatError::UnknownReset { name: excerpt(text) })
    }
}
