//! The progress of long calls, for others to see.
//!
//! Each process has a [`ProgressSlot`] in shared memory, which it alone writes. It shows one call: one that is made within another is not
//! shown. Readers find a call whole or not at all, for what may be seen of it depends on whose it is.

use crate::clock::UnixMicros;
use crate::sync::{AtomicU64, Ordering};

/// The function that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `snowflake_ids.audit`.
    Audit,
    /// `snowflake_ids.attach`.
    Attach,
    /// `snowflake_ids.detach`.
    Detach,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Audit, Self::Attach, Self::Detach];

    /// Returns what it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Attach => "attach",
            Self::Detach => "detach",
        }
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}

/// The present step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It looks at its arguments.
    Beginning,
    /// It waits until no transaction uses the table any more.
    Locking,
    /// It reads ids in their order; before the first one comes the server may have to sort them.
    Reading,
    /// It looks for the highest id of the table, and of those below it.
    Searching,
    /// It changes defaults and sequences.
    Changing,
    /// It raises the tag above the highest id, at a registry on another server perhaps.
    Raising,
    /// It has the other nodes of a Citus cluster do the same.
    Propagating,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Beginning,
        Self::Locking,
        Self::Reading,
        Self::Searching,
        Self::Changing,
        Self::Raising,
        Self::Propagating,
    ];

    /// Returns what it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beginning => "initializing",
            Self::Locking => "waiting for the table",
            Self::Reading => "reading ids",
            Self::Searching => "searching for the highest id",
            Self::Changing => "changing defaults",
            Self::Raising => "raising the tag",
            Self::Propagating => "waiting for other nodes",
        }
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// The caller, and the subject of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function that is called.
    pub command: Command,
    /// The process that runs it.
    pub process: u32,
    /// The database, the session's role, and the table, by their oids.
    pub database: u32,
    /// See above.
    pub role: u32,
    /// See above.
    pub relation: u32,
    /// Time at which it began.
    pub began: UnixMicros,
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The call.
    pub call: Call,
    /// The phase that it is in.
    pub phase: Phase,
    /// Tables that are done with in this phase,
    pub tables: u64,
    /// and how many there are; None where it does not go by tables.
    pub tables_in_all: Option<u64>,
}

/// Number of times that a reader looks again that met the writer. One that was stopped in the midst of it is not waited
/// for.
const ATTEMPTS: u32 = 1_000;

const NONE: u64 = u64::MAX;

/// A slot for the call of one process.
#[derive(Debug, Default)]
pub struct ProgressSlot {
    /// Odd while another call moves in, or this one out.
    version: AtomicU64,
    /// The command's number among all, from 1, or 0 where there is no call; process, database, role, relation, and the beginning;
    /// from [`PHASE`] on phase, tables, and tables in all.
    words: [AtomicU64; 9],
}

/// The word of the phase.
const PHASE: usize = 6;

impl ProgressSlot {
    /// Shows a call. For the process whose place it is, as are all but [`Self::read`].
    pub fn begin(&self, call: &Call) {
        let numbers = [call.process, call.database, call.role, call.relation].map(u64::from);
        let [process, database, role, relation] = numbers;
        let (command, began) = (call.command as u64 + 1, call.began.0.cast_unsigned());
        let words = [command, process, database, role, relation, began, Phase::Beginning as u64, 0, NONE];
        self.change(|| store(&self.words, &words));
    }

    /// It goes on to another phase.
    pub fn enter(&self, phase: Phase) {
        self.change(|| store(&self.words[PHASE..], &[phase as u64, 0, NONE]));
    }

    /// So many tables of all are done with.
    pub fn set_tables(&self, done: u64, all: u64) {
        store(&self.words[PHASE + 1..], &[done, all]);
    }

    /// Shows it no more.
    pub fn end(&self) {
        self.change(|| store(&self.words, &[0]));
    }

    fn change(&self, change: impl FnOnce()) {
        // A reader that sees anything of the change sees the odd version, too.
        self.version.fetch_add(1, Ordering::AcqRel);
        change();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The call that it shows; None where there is none, and where the writer was met each time.
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
