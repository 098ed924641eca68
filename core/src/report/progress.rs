//! The progress of long calls, for others to see.
//!
//! Each process has a [`ProgressPlace`] in shared memory, which it alone writes. It shows one call: one that is made within another is not
//! shown. Readers find a call whole or not at all, for what may be seen of it depends on whose it is.

use crate::clock::UnixMicros;
use crate::sync::{AtomicU64, Ordering};

/// What is called.
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

/// What it does at the moment.
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

/// Whose call it is, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called.
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

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Whose it is.
    pub call: Call,
    /// What it does.
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

/// A place for the call of one process.
#[derive(Debug)]
pub struct ProgressPlace {
    /// Odd while another call moves in, or this one out.
    version: AtomicU64,
    /// 0: there is no call. Else the command's number among all, from 1.
    command: AtomicU64,
    process: AtomicU64,
    database: AtomicU64,
    role: AtomicU64,
    relation: AtomicU64,
    began: AtomicU64,
    phase: AtomicU64,
    tables: AtomicU64,
    tables_in_all: AtomicU64,
}

impl Default for ProgressPlace {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            version: zero(),
            command: zero(),
            process: zero(),
            database: zero(),
            role: zero(),
            relation: zero(),
            began: zero(),
            phase: zero(),
            tables: zero(),
            tables_in_all: zero(),
        }
    }
}

impl ProgressPlace {
    /// Shows a call. For the process whose place it is, as are all but [`Self::read`].
    pub fn begin(&self, call: &Call) {
        self.change(|| {
            let words = [
                (&self.command, number(&Command::ALL, call.command) + 1),
                (&self.process, call.process.into()),
                (&self.database, call.database.into()),
                (&self.role, call.role.into()),
                (&self.relation, call.relation.into()),
                (&self.began, call.began.0.cast_unsigned()),
                (&self.phase, number(&Phase::ALL, Phase::Beginning)),
                (&self.tables, 0),
                (&self.tables_in_all, NONE),
            ];
            for (word, value) in words {
                word.store(value, Ordering::Release);
            }
        });
    }

    /// It goes on to another phase.
    pub fn enter(&self, phase: Phase) {
        self.change(|| {
            self.phase.store(number(&Phase::ALL, phase), Ordering::Release);
            self.tables.store(0, Ordering::Release);
            self.tables_in_all.store(NONE, Ordering::Release);
        });
    }

    /// So many tables of all are done with.
    pub fn set_tables(&self, done: u64, all: u64) {
        self.tables.store(done, Ordering::Release);
        self.tables_in_all.store(all, Ordering::Release);
    }

    /// Shows it no more.
    pub fn end(&self) {
        self.change(|| self.command.store(0, Ordering::Release));
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
        let word = |word: &AtomicU64| word.load(Ordering::Acquire);
        let oid = |cell: &AtomicU64| u32::try_from(word(cell)).unwrap_or(0);
        let known = |cell: &AtomicU64| Some(word(cell)).filter(|value| *value != NONE);
        let call = Call {
            command: nth(&Command::ALL, word(&self.command).checked_sub(1)?)?,
            process: oid(&self.process),
            database: oid(&self.database),
            role: oid(&self.role),
            relation: oid(&self.relation),
            began: UnixMicros(word(&self.began).cast_signed()),
        };
        Some(Progress {
            call,
            phase: nth(&Phase::ALL, word(&self.phase))?,
            tables: word(&self.tables),
            tables_in_all: known(&self.tables_in_all),
        })
    }
}

fn number<T: Copy + PartialEq>(all: &[T], one: T) -> u64 {
    all.iter().position(|other| *other == one).unwrap_or(0) as u64
}

fn nth<T: Copy>(all: &[T], number: u64) -> Option<T> {
    all.get(usize::try_from(number).ok()?).copied()
}
