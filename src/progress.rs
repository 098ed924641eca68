//! The progress of this process in a long call, for the progress view.
//!
//! The view shows a call until the call returns. An error, a cancel or the end of the process also ends the display, because
//! the call's transaction or subtransaction is then rolled back.

use crate::pg::clock::SystemClock;
use crate::pg::per_process::PerProcess;
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
    subtransaction_aborted: Some(|aborted| {
        if SHOWN.get().is_some_and(|(_, began)| began >= aborted) {
            clear();
        }
    }),
    ..Hooks::none()
};

/// Shows a call on a table, unless another call is already shown.
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

/// Moves the call to another phase. Begins to show the call if it is not shown yet.
pub fn enter(command: Command, relation: u32, phase: Phase) {
    begin(command, relation);
    if let Some(slot) = own_slot().filter(|_| is_shown(command)) {
        slot.enter(phase);
    }
}

/// Shows how many of the call's tables are done.
pub fn set_tables(done: u64, all: u64) {
    if let Some(slot) = own_slot().filter(|_| SHOWN.get().is_some()) {
        slot.set_tables(done, all);
    }
}

/// Ends the display of the call.
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
