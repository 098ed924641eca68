//! Announces this process's open transaction to sessions that read a safe position: see
//! [`snowflake_ids_core::generator::safe_position`].

use crate::pg::per_process::PerProcess;
use crate::pg::server;
use crate::pg::transaction::{self, Hooks};
use crate::shared::generator::{SHARED, Shared};
use snowflake_ids_core::Position;
use snowflake_ids_core::generator::safe_position::{EndedTransaction, OpenTransaction};
use std::cell::Cell;

/// True if this process has announced the present transaction.
static ANNOUNCED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

static HOOKS: Hooks = Hooks { before_prepare: record, committed, ended: end, ..Hooks::none() };

/// Registers the hooks at server start, so that every process has them. A parallel worker may announce the leader's
/// transaction, and the hooks of the leader must then clear the announcement.
pub fn watch() {
    transaction::watch(&HOOKS);
}

/// Returns true if the present transaction is announced.
#[inline]
pub fn is_announced() -> bool {
    ANNOUNCED.get()
}

/// Announces the present transaction, before it takes its first position.
#[inline]
pub fn announce(shared: &Shared) {
    if !is_announced() {
        announce_first(shared);
    }
}

#[cold]
fn announce_first(shared: &Shared) {
    shared.frontier.keep_up(&shared.generator, &shared.layout);
    if let Some(own) = shared.own_transaction() {
        own.announce(&shared.frontier, server::database());
    }
    ANNOUNCED.set(true);
}

/// Records the transaction if it took positions and has an xid. Only a transaction with an xid may have stored rows, here or
/// elsewhere ([`crate::pg::foreign`]).
fn record() {
    let Some(shared) = SHARED.get().filter(|_| !transaction::is_of_leader()) else { return };
    // Nothing is recorded before the first reader. The first reader treats all xids below the next xid as missing from the
    // record. These xids include every transaction that finds no reader here.
    if shared.frontier.position() == Position::ZERO {
        return;
    }
    let first = shared.own_transaction().and_then(OpenTransaction::first);
    if let (Some(first), Some(xid)) = (first, transaction::xid()) {
        let ended = EndedTransaction { xid, first, database: server::database() };
        shared.ended.record(&mut shared.next_record.write(), ended);
    }
}

/// Records the transaction after other transactions can see its rows.
fn committed() {
    record();
    end();
}

fn end() {
    // A parallel worker begins and ends transactions of its own while the leader's transaction is open. Their ends must not
    // clear the announcement of the leader's transaction.
    if transaction::is_of_leader() {
        return;
    }
    ANNOUNCED.set(false);
    let own = SHARED.get().and_then(Shared::own_transaction);
    if let Some(own) = own.filter(|own| own.first().is_some()) {
        own.clear();
    }
}
