//! SQL on the tags of monotonic series. The keys of a series are divided into sections, and each section takes its
//! numbers from a segment tag.

use crate::pg::statement::Statement;
use crate::pg::tag::TagText;
use pgrx::spi::SpiError;
use snowflake_ids_core::sequence::directory::Tag;

static RAISE: Statement = Statement::new("SELECT snowflake_ids_internal.segment_raise($1, $2)");

/// Ensures that all numbers that a section reserves later are above a value. `tag` is the section's tag.
pub fn raise(tag: &[u8], value: i64) -> Result<(), SpiError> {
    let Some(tag) = Tag::new(tag) else { return Ok(()) };
    RAISE.run(&[TagText(tag).into(), value.into()])
}
