//! Statements that change bound sequences. An altered or restarted bound sequence is set to its end (its maximum) again, so
//! that the server's own nextval still fails. A dropped sequence loses its binding. New columns with a sequence are attached,
//! unless the setting `snowflake_ids.new_columns` is off.

use super::error::SequenceError;
use super::{bind, cache};
use crate::pg::extension;
use crate::pg::per_process::PerProcess;
use crate::pg::read_lock::{Lock, Wait};
use crate::pg::redirect::{self, TaggedDefault};
use crate::pg::relation::Relation;
use crate::pg::relcache;
use crate::pg::replication;
use crate::pg::report::{raise, report, spi, tell};
use crate::pg::sequence::{self, SequenceTerms};
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use crate::pg::text::TextOut;
use crate::pg::transaction::{self, Hooks};
use crate::settings;
use crate::store::bound::NumberSource;
use crate::store::tables::{SEGMENT, SEQUENCE_BINDING};
use crate::tag::error::SegmentError;
use crate::tag::privilege;
use pgrx::pg_sys::Oid;
use pgrx::spi::SpiError;
use snowflake_ids_core::bound::{Increment, is_sentinel};
use snowflake_ids_core::column::error::Obstacle;
use snowflake_ids_core::column::notice::Notice;
use snowflake_ids_core::tag::privilege::Access;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

static ATTACH: Statement = Statement::new("SELECT snowflake_ids_internal.attach_created($1, $2, $3)");
/// Others who take ids of a bound sequence's tag, as a notice; null if there are none.
static USERS: Statement = Statement::new(
    "SELECT json_build_object('use', u.users, 'sequence', (SELECT c.relname FROM pg_class AS c WHERE c.oid = $1), 'tag', $2)::text
     FROM (SELECT CASE WHEN EXISTS (SELECT FROM snowflake_ids.registry_server) THEN 'registered'
         WHEN snowflake_ids_internal.has_workers() THEN 'clustered'
         WHEN snowflake_ids_internal.sequence_tag_is_shared($1, $2) THEN 'shared' END) AS u (users) WHERE u.users IS NOT NULL",
);
/// Moves the numbers of a column with gaps, which go on from the new number.
static SHIFT: Statement = Statement::new(
    "UPDATE snowflake_ids.segment AS s SET remainder = ($2 + 1) % s.increment
     WHERE s.tag = $1 COLLATE \"C\" AND s.is_made AND s.remainder <> ($2 + 1) % s.increment",
);
static MOVE: Statement = Statement::new("SELECT snowflake_ids_internal.segment_set($1, $2, true)");

/// True if this transaction has dropped a sequence that may have been bound, or a default that took ids of a tag.
static DROPS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// These defaults.
static UNTAGGED: PerProcess<RefCell<Vec<TaggedDefault>>> = PerProcess::new(RefCell::new(Vec::new()));
/// True if this transaction may have applied a publisher's TRUNCATE.
static TRUNCATES: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

static AT_COMMIT: Hooks = Hooks {
    before_commit: at_commit,
    before_prepare: at_commit,
    committed: cache::ended,
    ended: || {
        DROPS.set(false);
        UNTAGGED.take();
        TRUNCATES.set(false);
        cache::ended();
    },
    ..Hooks::none()
};

/// Records that a sequence is dropped. The row of the sequence's binding, if there is one, is removed after the statement, or at
/// commit.
pub fn sequence_dropped(of: Oid) {
    if !matches!(cache::row_at_once(of), Ok(None)) {
        DROPS.set(true);
    }
}

/// Records that a default or a domain is dropped. Its tag goes with its column, or with the domain.
pub fn default_dropped(of: Oid, is_domain: bool) {
    if SEGMENT.find().is_some()
        && let Some(default) = redirect::tagged_default(of, is_domain)
        && let Ok(mut defaults) = UNTAGGED.try_borrow_mut()
    {
        defaults.push(default);
        DROPS.set(true);
    }
}

/// Returns whether the transaction has dropped a sequence that may have been bound, and the row of its binding may remain, or a
/// default that took ids of a tag.
pub fn has_dropped() -> bool {
    DROPS.get()
}

/// Removes the rows of dropped sequences, and the tags that were made for their columns, so that a table that is made again
/// begins anew. Leaves both if the table of bindings is locked, or if the transaction would not see that others have moved a tag.
pub fn objects_dropped() {
    if transaction::sees_new_commits() {
        let mut defaults = UNTAGGED.take();
        defaults.retain(TaggedDefault::is_gone);
        if bind::drop_left(defaults.into_iter().map(|default| default.tag).collect()) {
            DROPS.set(false);
        }
    }
}

/// In a database with bound sequences, refuses a call of the server's own setval that the planner hook did not redirect. The
/// call could move a bound sequence away from its end. Later calls of nextval that are not redirected would then repeat
/// numbers.
pub fn setval_called() {
    if cache::is_any_bound() {
        raise(report(SequenceError::Unreached));
    }
}

/// Attaches new columns that have a sequence of their own: the column `number`, or all columns of a new table if `number` is
/// 0.
pub fn columns_created(relation: Oid, number: c_int) {
    if let Some(kind) = settings::new_columns()
        && !sequence::owned_by(relation).is_empty()
        && extension::keep()
    {
        let attached = ATTACH.run(&[relation.into(), number.into(), kind.into()]);
        attached.unwrap_or_else(|error| raise(spi(error)));
    }
}

pub fn identities_restarted() {
    settle_all(true, sequence::has_new_file);
}

/// Sets bound sequences to their end again, if this transaction has moved them.
fn settle_all(follows: bool, is_moved: fn(Oid) -> bool) {
    for of in cache::bound() {
        // This transaction cannot have moved a sequence that another transaction has locked.
        if let Some(lock) = Lock::take(of, Wait::No) {
            let settled = is_moved(of) && settle(of, follows).unwrap_or_else(|error| raise(report(error)));
            if !settled {
                lock.release();
            }
        }
    }
}

/// Makes logical replication's apply workers set bound sequences to their end again. A publisher's TRUNCATE restarts
/// sequences without a statement on this server, and Postgres 19 also copies the publisher's values. The tags and generators
/// of this server are not restarted. Call this function only while the server loads libraries.
pub fn watch_appliers() {
    transaction::watch(&AT_COMMIT);
    relcache::listen(|_| {
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
    // The row of a dropped sequence is removed, because a later sequence may get the same oid.
    if DROPS.replace(false) {
        transaction::with_snapshot(bind::forget_dropped_at_once);
    }
}

pub fn altered(of: Oid) {
    if !cache::is_bound(of) {
        return;
    }
    settle(of, true).unwrap_or_else(|error| raise(report(error)));
    // The sequence may have another owner now, so all sessions must look the sequence up again.
    if let Some(table) = SEQUENCE_BINDING.find() {
        table.announce();
    }
}

/// Keeps the kind of identity that a column was.
pub fn identity_set(of: Oid, letter: u8) {
    bind::set_identity(of, letter.cast_signed()).unwrap_or_else(|error| raise(report(error)));
}

/// Binds the sequence of an identity as the column's former sequence was bound, so that its ids go on.
pub fn identity_added(former: Oid, new: Oid) {
    take_over(former, new).unwrap_or_else(|error| raise(report(error)));
}

fn take_over(former: Oid, new: Oid) -> Result<(), SequenceError> {
    let (Some(terms), Some(relation)) = (sequence::terms(new), Relation::find(new)) else { return Ok(()) };
    check_terms(new, terms)?;
    // A row of a sequence that is not at its end counts for nothing.
    relation.as_owner(|| sequence::setval(new, terms.max, true));
    bind::rebind(former, new)?;
    transaction::see_own_changes();
    settle(new, false).map(drop)
}

/// Keeps bound sequences durable whose table became unlogged: a crash would set them back to numbers that they gave before. They
/// become unlogged when they are unbound. Refuses the change of a sequence by itself.
pub fn persistence_set(of_sequence: bool) {
    for of in cache::bound() {
        // This transaction cannot have changed a sequence that another transaction has locked.
        let Some(lock) = Lock::take(of, Wait::No) else { continue };
        if !sequence::has_new_file(of) {
            lock.release();
            continue;
        }
        let unlogged = sequence::is_unlogged(of);
        if unlogged && of_sequence {
            raise(report(Obstacle::Unlogged(sequence::name(of))));
        } else if unlogged {
            sequence::make_logged(of);
        }
        bind::set_unlogged(of, unlogged).unwrap_or_else(|error| raise(report(error)));
    }
}

fn check_terms(of: Oid, terms: SequenceTerms) -> Result<(), SequenceError> {
    if terms.cycles {
        return Err(SequenceError::Cycles(sequence::name(of)));
    }
    Increment::new(terms.increment)?;
    Ok(())
}

/// Sets a bound sequence to its end again. With `follows`, a restart of the sequence also restarts its tag. Returns whether
/// the sequence had to be moved.
fn settle(of: Oid, follows: bool) -> Result<bool, SequenceError> {
    let (Some(binding), Some(terms)) = (cache::binding_of(of), sequence::terms(of)) else { return Ok(false) };
    let Some(relation) = Relation::find(of) else { return Ok(false) };
    let Some(position) = relation.position() else { return Ok(false) };
    check_terms(of, terms)?;
    if let NumberSource::Snowflake(generator) = &binding {
        bind::check_layout(of, terms.increment, generator.as_ref().map(|name| name.as_bytes()))?;
    }
    if is_sentinel(position.last_value, position.is_called, terms.max) {
        return Ok(false);
    }
    relation.as_owner(|| sequence::setval(of, terms.max, true));
    match binding {
        // If `is_called` is set, the sequence was not restarted; only its maximum has changed.
        _ if position.is_called || !follows => {}
        NumberSource::Snowflake(_) => {
            pgrx::notice!(
                "sequence \"{}\" is not restarted: it gives snowflake ids, which follow the clock",
                sequence::name(of)
            );
        }
        NumberSource::Unreadable => {}
        NumberSource::Segment(tag) => {
            let highest = position.last_value.saturating_sub(1);
            // The sequence's owner needs the right to move the tag, because the restart affects everyone who uses the tag.
            privilege::check(&tag, Access::Move, relation.owner(), None)
                .map_err(|error| SequenceError::of_tag(error, of))?;
            let table =
                SEQUENCE_BINDING.find().ok_or_else(|| SequenceError::of_tag(SegmentError::NoTable, of))?;
            table.as_owner(|| restart(of, &TagText(*tag), highest.max(0)))?;
        }
    }
    Ok(true)
}

/// Restarts the tag of a bound sequence above an id, unless others take ids of the tag, too.
fn restart(of: Oid, tag: &TagText, highest: i64) -> Result<(), SpiError> {
    let users = USERS.value::<TextOut>(&[of.into(), (*tag).into()])?;
    if let Some(users) = users {
        serde_json::from_str::<Notice>(&users.to_utf8_lossy()).into_iter().for_each(tell);
        return Ok(());
    }
    SHIFT.run(&[(*tag).into(), highest.into()])?;
    MOVE.run(&[(*tag).into(), highest.into()])
}
