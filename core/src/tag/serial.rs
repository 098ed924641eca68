//! Numbers as text with a date: `20261120-000001`, from a template such as `{YYYY}{MM}{DD}-{n:6}`.
//!
//! | in a template | gives |
//! | --- | --- |
//! | `{YYYY}`, `{YY}` | the year of the period in four digits, or in its last two digits |
//! | `{MM}`, `{DD}` | the period's month and day |
//! | `{n}` | the number; a template has `{n}` or `{n:6}` exactly once |
//! | `{n:6}` | the number with leading zeros, at least 6 digits in all; the width may be 1 to 19 |
//! | `{{`, `}}` | a brace |
//!
//! All other text is copied. A tag that starts over each period has the same numbers in every period, so its template
//! must contain the period. The template must not contain a finer date, because the text shows only the period's first
//! day.
//!
//! Only the number has a variable width, so texts of different periods or numbers differ up to the year 9999. Texts with
//! `{YY}` in place of `{YYYY}` repeat after a century.

mod error;
mod field;
mod template;

pub use error::FormatError;
pub use field::{MAX_FORMAT_BYTES, Reset};
pub use template::NumberFormat;
