//! Ids as short text and back.

use crate::pg::report::report;
use crate::pg::text::Text;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::PrefixedFormat;

/// An id as text in base62, base58, base36, crockford32 or hex, after a prefix in the case of `cus_base58`; with `fixed_width`
/// padded so that text sorts (under collation "C") like the ids.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_encode(
    id: i64,
    format: Text<'_>,
    fixed_width: default!(bool, false),
) -> Result<String, ErrorReport> {
    named(&format)?.encode(id, fixed_width).map_err(|error| report(&error))
}

/// The id that a text says.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_decode_text(text: Text<'_>, format: Text<'_>) -> Result<i64, ErrorReport> {
    named(&format)?.decode(&text.read("text")?).map_err(|error| report(&error))
}

/// The same; null where the text says none, as in a request from outside. A format that there is not is an error.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_try_decode_text(text: Text<'_>, format: Text<'_>) -> Result<Option<i64>, ErrorReport> {
    let format = named(&format)?;
    Ok(text.read("text").ok().and_then(|text| format.decode(&text).ok()))
}

fn named(format: &Text<'_>) -> Result<PrefixedFormat, ErrorReport> {
    format.read("format")?.parse().map_err(|error| report(&error))
}
