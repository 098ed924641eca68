//! Conversion of ids to short text and back.

use crate::pg::report::report;
use crate::pg::text::Text;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::PrefixedFormat;

/// Returns an id as text in base62, base58, base36, crockford32 or hex, with a prefix if the format is `cus_base58`. With
/// `fixed_width`, the text is padded and sorts like the ids under collation "C".
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_encode(
    id: i64,
    format: Text<'_>,
    fixed_width: default!(bool, false),
) -> Result<String, ErrorReport> {
    named(&format)?.encode(id, fixed_width).map_err(|error| report(&error))
}

/// Returns the id in a text.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_decode_text(text: Text<'_>, format: Text<'_>) -> Result<i64, ErrorReport> {
    named(&format)?.decode(&text.read("text")?).map_err(|error| report(&error))
}

/// Returns the id in a text, or null if the text contains none, as input from users may. An unknown format is an error.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_try_decode_text(text: Text<'_>, format: Text<'_>) -> Result<Option<i64>, ErrorReport> {
    let format = named(&format)?;
    Ok(text.read("text").ok().and_then(|text| format.decode(&text).ok()))
}

fn named(format: &Text<'_>) -> Result<PrefixedFormat, ErrorReport> {
    format.read("format")?.parse().map_err(|error| report(&error))
}
