//! Conversion of ids to short text and back.

use crate::pg::report::report;
use crate::pg::text::Text;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::{Format, PrefixedFormat};

/// Returns an id as text in base62, base58, base36, crockford32 or hex. With `fixed_width`, the text is padded and sorts like
/// the ids under collation "C".
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_encode(
    id: i64,
    format: Text<'_>,
    fixed_width: default!(bool, false),
) -> Result<String, ErrorReport> {
    named(&format)?.encode(id, fixed_width).map_err(report)
}

/// Returns an id as text after a prefix and an underscore.
#[pg_extern(name = "snowflake_encode", immutable, strict, parallel_safe)]
fn snowflake_encode_with_prefix(
    id: i64,
    format: Text<'_>,
    prefix: Text<'_>,
    fixed_width: default!(bool, false),
) -> Result<String, ErrorReport> {
    prefixed(&format, &prefix)?.encode(id, fixed_width).map_err(report)
}

/// Returns the id in a text.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_decode_text(text: Text<'_>, format: Text<'_>) -> Result<i64, ErrorReport> {
    named(&format)?.decode(&text.read("text")?).map_err(report)
}

/// Returns the id in a text, for input from users: null if the text contains no id. An unknown format is an error.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_try_decode_text(text: Text<'_>, format: Text<'_>) -> Result<Option<i64>, ErrorReport> {
    let format = named(&format)?;
    Ok(text.read("text").ok().and_then(|text| format.decode(&text).ok()))
}

/// Returns the id in a text with a prefix. Another prefix is an error.
#[pg_extern(name = "snowflake_decode_text", immutable, strict, parallel_safe)]
fn snowflake_decode_text_with_prefix(
    text: Text<'_>,
    format: Text<'_>,
    prefix: Text<'_>,
) -> Result<i64, ErrorReport> {
    prefixed(&format, &prefix)?.decode(&text.read("text")?).map_err(report)
}

/// Returns the id in a text with a prefix, or null if the text contains no id or has another prefix.
#[pg_extern(name = "snowflake_try_decode_text", immutable, strict, parallel_safe)]
fn snowflake_try_decode_text_with_prefix(
    text: Text<'_>,
    format: Text<'_>,
    prefix: Text<'_>,
) -> Result<Option<i64>, ErrorReport> {
    let format = prefixed(&format, &prefix)?;
    Ok(text.read("text").ok().and_then(|text| format.decode(&text).ok()))
}

fn named(format: &Text<'_>) -> Result<Format, ErrorReport> {
    format.read("format")?.parse().map_err(report)
}

fn prefixed(format: &Text<'_>, prefix: &Text<'_>) -> Result<PrefixedFormat, ErrorReport> {
    PrefixedFormat::new(named(format)?, &prefix.read("prefix")?).map_err(report)
}
