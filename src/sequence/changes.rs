//! Statements that change bound sequences. One that is altered or restarted stands at its end again afterwards, so that a
//! call that is not redirected goes on to fail; one that is dropped is bound no more. New columns that have one are attached, where
//! the setting says so.

use super::error::SequenceError;
use super::{bind, cache};
use crate::pg::extension;
use crate::pg::process::PerProcess;
use crate::pg::relation::Relation;
use crate::pg::replication;
use crate::pg::report::{raise, report, spi};
use crate::pg::sequence;
use crate::pg::statement::Statement;
use crate::pg::tag::TagText;
use crate::pg::transaction::{self, Hooks};
use crate::segment::error::SegmentError;
use crate::segment::privilege;
use crate::settings;
use crate::store::sequence::Binding;
use crate::store::tables::SEQUENCE_BINDING;
use pgrx::pg_sys::BuiltinOid::{INT4OID, INT8OID, OIDOID, TEXTOID};
use pgrx::pg_sys::Oid;
use snowflake_ids_core::sequence::bound_sequence::{Increment, is_sentinel};
use snowflake_ids_core::sequence::privilege::Action;
use std::cell::Cell;
use std::ffi::c_int;

static ATTACH: Statement =
    Statement::new("SELECT snowflake_ids_internal.attach_created($1, $2, $3)", &[OIDOID, INT4OID, TEXTOID]);
static RESTART: Statement =
    Statement::new("SELECT snowflake_ids_internal.sequence_restart($1, $2, $3)", &[OIDOID, TEXTOID, INT8OID]);

/// True if this transaction has dropped a sequence that may have been bound.
static DROPS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// True if this transaction may have applied a publisher's TRUNCATE.
static TRUNCATES: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

static AT_COMMIT: Hooks = Hooks {
    before_commit: at_commit,
    before_prepare: || {
        cache::refuse_to_prepare();
        at_commit();
    },
    committed: cache::committed,
    ended: || {
        DROPS.set(false);
        TRUNCATES.set(false);
        cache::ended();
    },
    ..Hooks::none()
};

/// A sequence is dropped, unless the transaction is rolled back.
pub fn sequence_dropped(of: Oid) {
    if !matches!(cache::row_at_once(of), Ok(None)) {
        DROPS.set(true);
    }
}

/// The server's own setval is about to be called, where the call was not redirected. It would move a bound sequence away
/// from its end, and calls of nextval beside it would then give numbers that were given.
pub fn setval_called() {
    if cache::is_any_bound() {
        raise(report(&SequenceError::Unreached));
    }
}

/// Attaches the columns of a new table, with number 0, or a new column, that have a sequence of their own.
pub fn columns_created(relation: Oid, number: c_int) {
    if let Some(kind) = settings::new_columns()
        && extension::keep()
    {
        let attached = ATTACH.run(&[relation.into(), number.into(), kind.into()]);
        attached.unwrap_or_else(|error| raise(spi(&error)));
    }
}

pub fn identities_restarted() {
    settle_all(true, sequence::has_new_file);
}

/// Settles the bound sequences that this transaction has moved.
fn settle_all(follows: bool, is_moved: fn(Oid) -> bool) {
    for of in cache::bound() {
        // This transaction has moved none that another one has locked.
        if sequence::lock_at_once(of) {
            let settled = is_moved(of) && settle(of, follows).unwrap_or_else(|error| raise(report(&error)));
            if !settled {
                sequence::unlock(of);
            }
        }
    }
}

/// Has processes that apply a publisher's changes put sequences at their end again: its TRUNCATE is no statement here, and restarts
/// them; from 19 on they are set as the publisher's stand. Their ids are this server's, and go on. Only while the server loads
/// libraries.
pub fn watch_appliers() {
    transaction::watch(&AT_COMMIT);
    sequence::tell_changes(|| {
        if replication::is_applier() {
            TRUNCATES.set(true);
        }
    });
}

fn at_commit() {
    if TRUNCATES.replace(false) {
        transaction::with_snapshot(|| settle_all(false, sequence::has_new_file));
    }
    if replication::is_setting_sequences() {
        transaction::with_snapshot(|| settle_all(false, |_| true));
    }
    // Another sequence may get the oid of a dropped one one day.
    if DROPS.replace(false) {
        transaction::with_snapshot(bind::forget_dropped_at_once);
    }
}

pub fn altered(of: Oid) {
    // While others have the table locked, no sequence that this transaction created has a row.
    if (sequence::is_new(of) && !matches!(cache::row_at_once(of), Ok(Some(_))))
        || cache::binding_of(of).is_none()
    {
        return;
    }
    settle(of, true).unwrap_or_else(|error| raise(report(&error)));
    // It may have another owner now.
    if let Some(table) = SEQUENCE_BINDING.find() {
        table.announce();
    }
}

/// Puts a bound sequence at its end again; a restart of it is followed or not. Returns whether it stood elsewhere.
fn settle(of: Oid, follows: bool) -> Result<bool, SequenceError> {
    let (Some(binding), Some(terms)) = (cache::binding_of(of), sequence::terms(of)) else { return Ok(false) };
    let Some(relation) = Relation::find(of) else { return Ok(false) };
    let Some(position) = relation.position() else { return Ok(false) };
    if terms.cycles {
        return Err(SequenceError::Cycles(sequence::name(of)));
    }
    Increment::new(terms.increment)?;
    if is_sentinel(position.last_value, position.is_called, terms.max) {
        return Ok(false);
    }
    relation.as_owner(|| sequence::setval(of, terms.max, true));
    match binding {
        // One that was not restarted stands where it stood, with another maximum.
        _ if position.is_called || !follows => {}
        Binding::Snowflake(_) => {
            pgrx::notice!(
                "sequence \"{}\" is not restarted: it gives snowflake ids, which follow the clock",
                sequence::name(of)
            );
        }
        Binding::Unreadable => {}
        Binding::Segment(tag) => {
            let highest = position.last_value.saturating_sub(1);
            // The owner's: the sequence is restarted for all that use it.
            privilege::check(&tag, Action::Move, relation.owner(), None)
                .map_err(|error| SequenceError::of_tag(error, of))?;
            let table =
                SEQUENCE_BINDING.find().ok_or_else(|| SequenceError::of_tag(SegmentError::NoTable, of))?;
            let arguments = [of.into(), TagText(*tag).into(), highest.max(0).into()];
            table.as_owner(|| RESTART.run(&arguments))?;
        }
    }
    Ok(true)
}
