//! The progress that this process shows of a long call.
//!
//! It shows it no more when the call ends, however that is: by its result; by an error or a cancel, which rolls back the transaction
//! or the subtransaction that the call began in; with the process, which rolls its transaction back first.

use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::transaction::{self, Hooks, Subtransaction};
use crate::pg::{role, server};
use crate::shared::progress::own_slot;
use snowflake_ids_core::Clock;
use snowflake_ids_core::report::progress::{Call, Command, Phase};
use std::cell::Cell;

/// The command that is shown, and the subtransaction in which it began.
static SHOWN: PerProcess<Cell<Option<(Command, Subtransaction)>>> = PerProcess::new(Cell::new(None));

static HOOKS: Hooks = Hooks {
    committed: clear,
    ended: clear,
    subtransaction_aborted: |aborted| {
        if SHOWN.get().is_some_and(|(_, began)| began >= aborted) {
            clear();
        }
    },
    ..Hooks::none()
};

/// Shows a call on a table, unless it is made within another one.
fn begin(command: Command, relation: u32) {
    let Some(slot) = own_slot().filter(|_| SHOWN.get().is_none()) else { return };
    transaction::watch(&HOOKS);
    SHOWN.set(Some((command, Subtransaction::current())));
    slot.begin(&Call {
        command,
        process: std::process::id(),
        database: server::database(),
        role: role::of_session().to_u32(),
        relation,
        began: SystemClock.now(),
    });
}

/// The call goes on to another phase; it is shown from now on where it was not.
pub fn enter(command: Command, relation: u32, phase: Phase) {
    begin(command, relation);
    if let Some(slot) = own_slot().filter(|_| is_shown(command)) {
        slot.enter(phase);
    }
}

/// So many of the tables are done with, of those that the call looks at one after the other.
pub fn set_tables(done: u64, all: u64) {
    if let Some(slot) = own_slot().filter(|_| SHOWN.get().is_some()) {
        slot.set_tables(done, all);
    }
}

/// The call has ended.
pub fn end(command: Command) {
    if is_shown(command) {
        clear();
    }
}

fn is_shown(command: Command) -> bool {
    SHOWN.get().is_some_and(|(shown, _)| shown == command)
}

fn clear() {
    if SHOWN.take().is_some()
        && let Some(slot) = own_slot()
    {
        slot.end();
    }
}
