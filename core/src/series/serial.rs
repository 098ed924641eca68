//! Numbers as text with a date: `20261120-000001`, from a template such as `{YYYY}{MM}{DD}-{n:6}`.
//!
//! | in a template | gives |
//! | --- | --- |
//! | `{YYYY}`, `{YY}` | the year of the period in four digits, or the last two of them |
//! | `{MM}`, `{DD}` | its month and its day |
//! | `{n}` | the number; exactly one per template |
//! | `{n:6}` | the number with zeros before it up to 6 digits (1 to 19), and in full where it has more |
//! | `{{`, `}}` | a brace |
//!
//! All else stands for itself. A tag whose count starts anew each period has the same numbers in every one, so
//! its template must say the period. It must say no more than that, since a key shows the period's first day and
//! not the day it was made. All fields but the number have a fixed width, so keys of different periods or numbers
//! always differ, up to the year 9999. Keys with `{YY}` in place of `{YYYY}` come again after a century.

mod error;
mod field;
mod template;

pub use error::FormatError;
pub use field::{MAX_FORMAT_BYTES, Reset};
pub use template::NumberFormat;
