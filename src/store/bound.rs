//! The table of bound sequences, whose numbers come from this extension. The table is read without SQL, because the planner
//! hook reads it, and the server would call the hook for this SQL, too.

use super::tables::SEQUENCE_BINDING;
use crate::pg::catalog::Unseen;
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought, View};
use crate::pg::tag_text::{TagText, checked};
use crate::pg::{extension, redirect};
use pgrx::pg_sys::Oid;
use snowflake_ids_core::column::facts::IdentityKind;
use snowflake_ids_core::tag::directory::Tag;
use std::rc::Rc;

/// The source of a sequence's numbers.
#[derive(Clone, Debug)]
pub enum NumberSource {
    /// Snowflake ids, from the named generator if one is given.
    Snowflake(Option<Rc<Tag>>),
    Segment(Rc<Tag>),
    /// The row is invalid: a user has written it by hand.
    Unreadable,
}

#[derive(Clone, Debug)]
pub struct Bound {
    pub binding: NumberSource,
    /// True if the sequence was seen at its end (its maximum), where `bind_sequence` puts the sequence. An unchecked row
    /// counts only while the sequence stands at its end.
    pub is_checked: bool,
    /// True if a call takes one id of the tag, which has the sequence's increment.
    pub is_single: bool,
    /// The kind of identity that the sequence's column was.
    pub identity: Option<IdentityKind>,
}

impl Bound {
    fn of(row: &rows::Row<'_>) -> Self {
        let text = |column| {
            let read = || row.tag(column).and_then(|TagText(tag)| checked(tag.as_bytes()).ok()).map(Rc::new);
            (!row.has_no_text(column)).then(read)
        };
        let binding = match (text(c"tag"), text(c"generator")) {
            (None, None) => NumberSource::Snowflake(None),
            (None, Some(Some(generator))) => NumberSource::Snowflake(Some(generator)),
            (Some(Some(tag)), None) => NumberSource::Segment(tag),
            _ => NumberSource::Unreadable,
        };
        let identity = row.letter(c"identity").and_then(IdentityKind::of);
        let is_single = row.boolean(c"single").unwrap_or(false);
        Self { binding, is_checked: row.boolean(c"checked").unwrap_or(true), is_single, identity }
    }
}

/// Returns whether the table has any row. Call only within a transaction.
pub fn is_any(wait: Wait) -> Result<bool, Unseen> {
    rows::has(&SEQUENCE_BINDING, wait, View::Committed, &[])
}

/// Returns the row of a sequence. Call only within a transaction.
pub fn of_sequence(sequence: Oid, wait: Wait) -> Result<Option<Bound>, Unseen> {
    let mut found = None;
    let of_sequence = [(c"sequence", Sought::Oid(sequence))];
    rows::look(&SEQUENCE_BINDING, wait, &of_sequence, |row| found = Some(Bound::of(row)))?;
    Ok(found)
}

/// Returns all sequences that have a row. Waits for a lock on the table without a limit. Call only within a transaction.
pub fn all() -> Vec<Oid> {
    let mut found = Vec::new();
    let _missing =
        rows::look(&SEQUENCE_BINDING, Wait::Yes(None), &[], |row| found.extend(row.oid(c"sequence")));
    found
}

/// Returns the functions that replace the server's sequence functions. Returns None if the extension's owner has dropped one of
/// these functions.
pub fn targets(
    of_column: fn(Oid, i16) -> Option<Oid>,
    identities: fn(Oid) -> redirect::Identities,
) -> Option<redirect::Targets> {
    let find = |function: &str| extension::function(&format!("snowflake_ids_internal.sequence_{function}"));
    let id = |function: &str| extension::function(&format!("pg_catalog.{function}"));
    Some(redirect::Targets {
        calls: [
            find("nextval(pg_catalog.regclass)")?,
            find("currval(pg_catalog.regclass)")?,
            find("lastval()")?,
            find("setval(pg_catalog.regclass,pg_catalog.int8)")?,
            find("setval(pg_catalog.regclass,pg_catalog.int8,pg_catalog.bool)")?,
        ],
        recorded: find("recorded(pg_catalog.regclass,pg_catalog.int8)")?,
        ids: [
            id("snowflake_nextval()")?,
            id("snowflake_id()")?,
            id("snowflake_nextval(pg_catalog.text)")?,
            id("snowflake_id(pg_catalog.text)")?,
            id("snowflake_id(pg_catalog.unknown)")?,
            id("segment_nextval(pg_catalog.text)")?,
            id("segment_id(pg_catalog.text)")?,
        ],
        support: id("nextval_support(pg_catalog.internal)")?,
        of_column,
        identities,
    })
}
