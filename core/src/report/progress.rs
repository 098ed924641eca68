//! The progress of long calls, for the progress view.
//!
//! Each process has a [`ProgressSlot`] in shared memory, and only that process writes it. The slot shows the outer call
//! if a call runs inside another call. A reader gets all fields of one call, or nothing. A mixture of two calls could
//! show one role's call to another role.

use crate::clock::UnixMicros;
use crate::named_enum::named_enum;
use crate::sync::{AtomicU64, Ordering};

named_enum! {
    /// The functions of `snowflake_ids` that show their progress.
    pub enum Command {
        /// Compares a tag with the ids in a table.
        Audit = "audit",
        /// Makes a tag the source of a column's ids.
        Attach = "attach",
        /// Undoes an attach.
        Detach = "detach",
    }
}

named_enum! {
    /// The phases of a call, as the progress view names them.
    pub enum Phase {
        /// The call checks its arguments.
        Initializing = "initializing",
        /// The call waits until no transaction uses the table any more.
        WaitingForTable = "waiting for the table",
        /// The call reads ids in order. The server may have to sort the ids before it returns the first one.
        ReadingIds = "reading ids",
        /// The call searches for the highest id in the table and its child tables.
        SearchingHighest = "searching for the highest id",
        /// The call changes the defaults of columns.
        ChangingDefaults = "changing defaults",
        /// The call raises the tag (a named id range) above the highest id, possibly at a registry on another server.
        RaisingTag = "raising the tag",
        /// The call runs on the other nodes of a Citus cluster.
        WaitingForNodes = "waiting for other nodes",
    }
}

/// The caller, and the table of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function that was called.
    pub command: Command,
    /// The process id.
    pub process: u32,
    /// The oid of the database.
    pub database: u32,
    /// The oid of the session's role.
    pub role: u32,
    /// The oid of the table.
    pub relation: u32,
    /// The start of the call.
    pub began: UnixMicros,
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The call.
    pub call: Call,
    /// The present phase.
    pub phase: Phase,
    /// Number of tables that are finished in this phase.
    pub tables: u64,
    /// Number of all tables. None if the phase does not count tables.
    pub tables_in_all: Option<u64>,
}

/// Number of times that a reader retries during a write. The reader then gives up, because the writer may have been
/// stopped during the write.
const ATTEMPTS: u32 = 1_000;

const NONE: u64 = u64::MAX;

/// The slot of one process.
#[derive(Debug, Default)]
pub struct ProgressSlot {
    /// The version of `words`; odd during a change.
    version: AtomicU64,
    /// The first word is the place of the command in its enum plus 1, or 0 if there is no call. The next words are process,
    /// database, role, relation and start. The words from [`PHASE`] on are phase, finished tables and all tables.
    words: [AtomicU64; 9],
}

/// The index of the phase in `words`.
const PHASE: usize = 6;

impl ProgressSlot {
    /// Publishes a call in the slot. Only the slot's process may call this and the other methods, except
    /// [`Self::read`].
    pub fn begin(&self, call: &Call) {
        let numbers = [call.process, call.database, call.role, call.relation].map(u64::from);
        let [process, database, role, relation] = numbers;
        let (command, began) = (call.command as u64 + 1, call.began.0.cast_unsigned());
        let words = [command, process, database, role, relation, began, Phase::Initializing as u64, 0, NONE];
        self.change(|| store(&self.words, &words));
    }

    /// Begins another phase.
    pub fn enter(&self, phase: Phase) {
        self.change(|| store(&self.words[PHASE..], &[phase as u64, 0, NONE]));
    }

    /// Records the number of finished tables, and of all tables.
    pub fn set_tables(&self, done: u64, all: u64) {
        store(&self.words[PHASE + 1..], &[done, all]);
    }

    /// Removes the call from the slot.
    pub fn end(&self) {
        self.change(|| store(&self.words, &[0]));
    }

    fn change(&self, change: impl FnOnce()) {
        // A reader that sees part of the change also sees the odd version.
        self.version.fetch_add(1, Ordering::AcqRel);
        change();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the call. None if there is no call, or if a write disturbed each attempt.
    pub fn read(&self) -> Option<Progress> {
        for attempt in 0..ATTEMPTS {
            let version = self.version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                let found = self.look();
                if self.version.load(Ordering::Acquire) == version {
                    return found;
                }
            }
            crate::sync::pause(attempt);
        }
        None
    }

    fn look(&self) -> Option<Progress> {
        let words = self.words.each_ref().map(|word| word.load(Ordering::Acquire));
        let [command, process, database, role, relation, began, phase, tables, tables_in_all] = words;
        let oid = |word| u32::try_from(word).unwrap_or(0);
        let call = Call {
            command: nth(&Command::ALL, command.checked_sub(1)?)?,
            process: oid(process),
            database: oid(database),
            role: oid(role),
            relation: oid(relation),
            began: UnixMicros(began.cast_signed()),
        };
        let tables_in_all = Some(tables_in_all).filter(|tables| *tables != NONE);
        Some(Progress { call, phase: nth(&Phase::ALL, phase)?, tables, tables_in_all })
    }
}

fn store(words: &[AtomicU64], values: &[u64]) {
    for (word, value) in words.iter().zip(values) {
        word.store(*value, Ordering::Release);
    }
}

fn nth<T: Copy>(all: &[T], number: u64) -> Option<T> {
    all.get(usize::try_from(number).ok()?).copied()
}
