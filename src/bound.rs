//! Bound sequences: `nextval`, `currval`, `lastval` and `setval` of a sequence that gives this extension's ids. If the
//! database has bound sequences, the planner hook replaces calls to these functions with calls to this module. For sequences
//! that are not bound, this module calls the server's functions. A bound sequence itself stays at its maximum (its end),
//! where the server's nextval fails.

pub mod bind;
pub mod cache;
pub mod changes;
pub mod error;

use crate::named;
use crate::pg::per_process::PerProcess;
use crate::pg::sequence::{self, SequenceTerms, SequenceUse};
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use crate::pg::transaction;
use crate::pg::{role, server};
use crate::snowflake;
use crate::store::bound::NumberSource;
use crate::store::tables::SEGMENT;
use crate::tag;
use crate::tag::error::SegmentError;
use crate::tag::privilege;
use bind::confirm;
use cache::{Locked, locked_binding_of};
use error::SequenceError;
use pgrx::pg_sys::Oid;
use rustc_hash::FxHashMap;
use snowflake_ids_core::bound::{Increment, is_sentinel};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::Access;
use std::cell::{Cell, RefCell};

/// The session's last number of each bound sequence, from nextval or setval. COPY writes the numbers of its rows here, so that they
/// stay where they are until the process ends.
static NUMBERS: PerProcess<RefCell<Option<FxHashMap<u32, &'static Number>>>> =
    PerProcess::new(RefCell::new(None));
static LAST: PerProcess<Cell<Last>> = PerProcess::new(Cell::new(Last::Unbound));
/// Sequences of columns that the session inserted into while the table of bindings was locked. `lastval` finds out which of
/// these sequences are bound. The last bound sequence in this list is the sequence that the session used last.
static LATER: PerProcess<RefCell<Vec<Oid>>> = PerProcess::new(RefCell::new(Vec::new()));

/// The session's last number of a sequence.
#[derive(Debug)]
pub struct Number {
    sequence: Oid,
    last: Cell<Option<i64>>,
}

/// The sequence that the session used last.
#[derive(Clone, Copy)]
enum Last {
    /// An unbound sequence, or no sequence. The server's own lastval applies.
    Unbound,
    Bound(Oid),
    /// A bound sequence whose number DISCARD SEQUENCES has cleared.
    Forgotten,
}

/// Raises a tag here, or at the registry. Returns the tag's highest id.
static RAISE: Statement = Statement::new(
    "SELECT CASE WHEN NOT EXISTS (SELECT FROM snowflake_ids.registry_server) THEN snowflake_ids_internal.segment_raise($1, $2)
         WHEN r.reached >= $2 OR NOT snowflake_ids_internal.registry_seed($1, $2) THEN r.reached ELSE $2 END
     FROM (SELECT max(r.max_id) AS reached FROM snowflake_ids.received AS r WHERE r.tag = $1 COLLATE \"C\") AS r",
);

/// Returns the next number of a sequence. The caller's rights on an identity column's sequence are not checked.
pub fn nextval(sequence: Oid, is_identity: bool) -> Result<i64, SequenceError> {
    let Some(binding) = locked_binding_of(sequence) else {
        used(Last::Unbound);
        return Ok(sequence::nextval(sequence, !is_identity));
    };
    if !is_identity && !cache::allows_next(sequence) {
        return Err(SequenceError::Denied(sequence::name(sequence)));
    }
    if !server::is_writable() {
        transaction::refuse_change(c"nextval()");
    }
    // A sequence without terms was dropped, but its binding still exists. The server's function reports the error.
    let Some(terms) = sequence::terms(sequence) else { return Ok(sequence::nextval(sequence, true)) };
    confirm(sequence);
    let increment = Increment::new(terms.increment)?.of_tag(cache::is_single(sequence));
    let number = match binding {
        NumberSource::Snowflake(generator) => {
            let of = generator.map_or_else(|| Ok(named::own()), |name| named::look_up(name.as_bytes()));
            let of = of.map_err(|error| SequenceError::of_generator(error.into(), sequence))?;
            snowflake::next_of_sequence("nextval", of, increment)
                .map_err(|error| SequenceError::of_generator(error, sequence))?
        }
        NumberSource::Segment(tag) => tag::next_of_sequence("nextval", &tag, increment)
            .map_err(|error| SequenceError::of_tag(error, sequence))?,
        NumberSource::Unreadable => return Err(SequenceError::Unreadable(sequence::name(sequence))),
    };
    record(sequence, number);
    used(Last::Bound(sequence));
    Ok(number)
}

/// Returns the session's last number of a sequence, from nextval or setval.
pub fn currval(sequence: Oid) -> Result<i64, SequenceError> {
    if locked_binding_of(sequence).is_none() {
        return Ok(sequence::currval(sequence));
    }
    check(sequence, SequenceUse::Look)?;
    recorded(sequence).ok_or_else(|| SequenceError::NoCurrent(sequence::name(sequence)))
}

pub fn lastval() -> Result<i64, SequenceError> {
    let later = LATER.borrow().clone();
    let bound = later.into_iter().rev().find(|sequence| cache::binding_of(*sequence).is_some());
    used(bound.map_or(LAST.get(), Last::Bound));
    let sequence = match LAST.get() {
        Last::Unbound => return Ok(sequence::lastval()),
        Last::Forgotten => return Err(SequenceError::NoLast),
        Last::Bound(sequence) => sequence,
    };
    if sequence::terms(sequence).is_none() {
        return Err(SequenceError::NoLast);
    }
    check(sequence, SequenceUse::Look)?;
    recorded(sequence).ok_or(SequenceError::NoLast)
}

/// Sets a sequence to a value. If the sequence is bound to a tag, the tag is raised but never lowered, so that no id is
/// issued twice. A sequence that is bound to snowflake ids does not move, because these ids follow the clock.
pub fn setval(sequence: Oid, value: i64, is_called: bool) -> Result<i64, SequenceError> {
    // The server's function is also called for values out of bounds, because it reports the error.
    let server = || sequence::setval(sequence, value, is_called);
    let Some(binding) = locked_binding_of(sequence) else {
        let number = server();
        confirm(sequence);
        return Ok(number);
    };
    check(sequence, SequenceUse::Set)?;
    transaction::refuse_change(c"setval()");
    let Some(SequenceTerms { min, max, increment, .. }) = sequence::terms(sequence) else {
        return Ok(server());
    };
    if is_sentinel(value, is_called, max) || !(min..=max).contains(&value) {
        return Ok(server());
    }
    match binding {
        NumberSource::Snowflake(_) => pgrx::notice!(
            "sequence \"{}\" is not moved: it gives snowflake ids, which follow the clock",
            sequence::name(sequence)
        ),
        NumberSource::Unreadable => return Err(SequenceError::Unreadable(sequence::name(sequence))),
        NumberSource::Segment(tag) => {
            // A number of the sequence stands for a block of `increment` ids of the tag. All ids of the block count as
            // issued.
            let reach = Increment::new(increment)?.of_tag(cache::is_single(sequence)).reach(value);
            raise_tag(sequence, &tag, if is_called { reach } else { value.saturating_sub(1) }, value)?;
        }
    }
    if is_called {
        record(sequence, value);
    }
    Ok(value)
}

/// Raises a tag with the rights of the owner of the table of tags. The current role must have the right to move the tag.
fn raise_tag(sequence: Oid, tag: &Tag, reach: i64, value: i64) -> Result<(), SequenceError> {
    let of_tag = |error| SequenceError::of_tag(error, sequence);
    privilege::check(tag, Access::Move, role::current(), None).map_err(of_tag)?;
    let source = SEGMENT.find().ok_or_else(|| of_tag(SegmentError::NoTable))?;
    let arguments = [TagText(*tag).into(), reach.into()];
    let raised = source.as_owner(|| RAISE.first(&arguments, |row| row.get::<i64>(1)))?.flatten();
    let highest = raised.unwrap_or(reach);
    if highest > reach {
        pgrx::notice!(
            "sequence \"{}\" is not moved back to {value}: ids up to {highest} of segment tag \"{}\" may be in use",
            sequence::name(sequence),
            TagText(*tag).shown()
        );
    }
    Ok(())
}

/// Records a number from a column's default as the last number of the column's sequence.
pub fn recorded_of_column(sequence: Oid, number: i64) -> i64 {
    match cache::called_binding_at_once(sequence) {
        Ok(None) => {}
        Ok(Some(_)) => {
            confirm(sequence);
            record(sequence, number);
            used(Last::Bound(sequence));
        }
        Err(Locked) => {
            record(sequence, number);
            let mut later = LATER.borrow_mut();
            later.retain(|other| *other != sequence);
            later.push(sequence);
        }
    }
    number
}

/// Returns where COPY records ids of a column, for `currval` of the column's sequence; None if the column has no bound sequence.
pub fn number_of_column(table: Oid, column: i16) -> Option<&'static Number> {
    let sequence = cache::of_column(table, column)?;
    cache::called_binding_at_once(sequence).ok()??;
    confirm(sequence);
    Some(number_of(sequence))
}

/// Records an id of a row that COPY inserts.
#[inline]
pub fn copied(number: &Number, id: i64) {
    number.last.set(Some(id));
    used(Last::Bound(number.sequence));
}

#[inline]
fn used(last: Last) {
    LATER.borrow_mut().clear();
    LAST.set(last);
}

pub fn forget_numbers() {
    NUMBERS.borrow().iter().flat_map(FxHashMap::values).for_each(|number| number.last.set(None));
    if matches!(LAST.get(), Last::Bound(_)) || !LATER.borrow().is_empty() {
        used(Last::Forgotten);
    }
}

fn record(sequence: Oid, number: i64) {
    number_of(sequence).last.set(Some(number));
}

fn number_of(sequence: Oid) -> &'static Number {
    let new = || Box::leak(Box::new(Number { sequence, last: Cell::new(None) }));
    NUMBERS.borrow_mut().get_or_insert_default().entry(sequence.to_u32()).or_insert_with(|| new())
}

fn recorded(sequence: Oid) -> Option<i64> {
    NUMBERS.borrow().as_ref()?.get(&sequence.to_u32())?.last.get()
}

fn check(sequence: Oid, usage: SequenceUse) -> Result<(), SequenceError> {
    if sequence::allows(sequence, usage) {
        Ok(())
    } else {
        Err(SequenceError::Denied(sequence::name(sequence)))
    }
}
