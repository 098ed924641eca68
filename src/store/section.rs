//! SQL on the tags of the sections of monotonic series.

use crate::pg::statement::Statement;
use crate::pg::tag::TagText;
use pgrx::pg_sys::BuiltinOid::{INT8OID, TEXTOID};
use pgrx::spi::SpiError;
use snowflake_ids_core::sequence::directory::Tag;

static RAISE: Statement =
    Statement::new("SELECT snowflake_ids_internal.segment_raise($1, $2)", &[TEXTOID, INT8OID]);

/// Ensures that all later numbers of a section are above a value.
pub fn raise(tag: &[u8], value: i64) -> Result<(), SpiError> {
    let Some(tag) = Tag::new(tag) else { return Ok(()) };
    RAISE.run(&[TagText(tag).into(), value.into()])
}
