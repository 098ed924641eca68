//! The table of bound sequences, looked at while a statement is planned: without SQL.

use super::tables::SEQUENCE_BINDING;
use crate::pg::catalog::{Source, Unseen};
use crate::pg::tag::TagText;
use crate::pg::{extension, redirect, rows};
use pgrx::pg_sys::Oid;
use snowflake_ids_core::directory::Tag;
use std::rc::Rc;

/// Where a sequence's numbers come from.
#[derive(Clone, Debug)]
pub enum Binding {
    /// Snowflake ids; of a named generator, where one is named.
    Snowflake(Option<Rc<Tag>>),
    /// Ids of a tag.
    Segment(Rc<Tag>),
}

/// The table of bound sequences of this database; None where the extension is not. Only within a transaction.
pub fn table() -> Option<Source> {
    SEQUENCE_BINDING.find()
}

/// All sequences that are bound; None where the table is locked and that is not waited for. Only within a transaction.
pub fn all(waits: bool) -> Option<Vec<(Oid, Binding)>> {
    let mut found = Vec::new();
    let each = |row: &rows::Row<'_>| {
        let Some(sequence) = row.oid(c"sequence") else { return };
        let binding = match row.tag(c"tag") {
            Some(TagText(tag)) => Binding::Segment(Rc::new(tag)),
            None => Binding::Snowflake(row.tag(c"generator").map(|TagText(name)| Rc::new(name))),
        };
        found.push((sequence, binding));
    };
    match rows::each(&SEQUENCE_BINDING, waits, each) {
        Ok(_) | Err(Unseen::NoTable) => Some(found),
        Err(Unseen::Locked) => None,
    }
}

/// The functions that take the place of the server's; None where this database's extension has none.
pub fn targets(of_column: fn(Oid, i16) -> Option<Oid>) -> Option<redirect::Targets> {
    let find = |function: &str| extension::function(&format!("snowflake_ids_internal.sequence_{function}"));
    let id = |function: &str| extension::function(&format!("pg_catalog.{function}"));
    Some(redirect::Targets {
        nextval: find("nextval(pg_catalog.regclass)")?,
        currval: find("currval(pg_catalog.regclass)")?,
        lastval: find("lastval()")?,
        setval: find("setval(pg_catalog.regclass,pg_catalog.int8)")?,
        setval3: find("setval(pg_catalog.regclass,pg_catalog.int8,pg_catalog.bool)")?,
        noted: find("noted(pg_catalog.regclass,pg_catalog.int8)")?,
        ids: [
            id("snowflake_nextval()")?,
            id("snowflake_id()")?,
            id("snowflake_nextval(pg_catalog.text)")?,
            id("snowflake_id(pg_catalog.text)")?,
            id("segment_nextval(pg_catalog.text)")?,
            id("segment_id(pg_catalog.text)")?,
        ],
        of_column,
    })
}
