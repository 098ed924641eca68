//! What sessions ask of the worker: a cell for each process, in memory that the caller provides.

use super::counter::ShortKey;
use crate::guard::{Guard, holds};
use crate::refill_worker::slot::Trouble;
use crate::series::key::{Key, KeyType};
use crate::series::limits::MAX_KEY_BYTES;

/// Numbers a call: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What a call gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A number, and the first day of its period.
    Number {
        /// The number.
        number: i64,
        /// The day.
        day: i32,
    },
    /// The worker sees no such series: it is gone, or it is of a transaction that has not committed.
    Unknown,
    /// The key has no number left.
    Exhausted,
    /// The registry that numbers come from gives none.
    Refused(Refusal),
}

/// Why a registry gives no numbers of a key, whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no dense series of this name.
    NoSeries,
    /// Its series is another one.
    Differs,
    /// Its row of the key is too far behind what was received.
    Behind,
    /// The period has not begun there.
    Ahead,
    /// Its database cannot have such a key, or other servers cannot.
    NoKey,
    /// It is not known which registry is meant.
    NoRegistry,
}

impl Refusal {
    /// What is wrong, at this registry.
    pub fn detail(self, registry: &str) -> String {
        match self {
            Self::NoSeries => format!("Registry \"{registry}\" has no dense series of this name."),
            Self::Differs => {
                format!(
                    "The series of registry \"{registry}\" has another key type, start, reset or time zone than here."
                )
            }
            Self::Behind => format!(
                "The key has come further here than the row of registry \"{registry}\" says, by more than two of the largest \
                 reservations: it was restored from a backup."
            ),
            Self::Ahead => {
                format!("The present period begins after tomorrow by the clock of registry \"{registry}\".")
            }
            Self::NoKey => format!("The database of registry \"{registry}\" cannot have this key."),
            Self::NoRegistry => {
                "This server is a worker of a Citus cluster that uses no registry, or it uses several.".into()
            }
        }
    }

    /// What to do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::NoSeries => "There, create the series too, on the same terms: snowflake_ids.series_create.",
            Self::Differs => "Create it anew on the same terms, here or there.",
            Self::Behind => {
                "There, set the key to the highest last_value that it has in snowflake_ids.series_key of any node: \
                 snowflake_ids.series_set."
            }
            Self::Ahead => "Have both servers' clocks synchronized.",
            Self::NoKey => "Use keys whose letters both databases' encodings have.",
            Self::NoRegistry => {
                "Draw from one registry: snowflake_ids.use_registry; of a Citus cluster, CALL snowflake_ids.use_citus() on the \
                 coordinator."
            }
        }
    }
}

/// What a call asks for: one number of a key.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'k> {
    /// The oid of the database.
    pub database: u32,
    /// The oid of the table of series.
    pub source: u32,
    /// The series' id.
    pub series: i64,
    /// The key.
    pub key: &'k Key,
    /// The first day of the period; 0 where the series has none.
    pub day: i32,
    /// The highest number that the series has.
    pub max_value: i64,
}

/// A request that is not answered, as the worker sees it.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Where it stands.
    pub cell: usize,
    /// Which one.
    pub ticket: Ticket,
    /// The table of series,
    pub source: u32,
    /// the series' id,
    pub series: i64,
    /// the key,
    pub key: Key,
    /// and the first day of the period.
    pub day: i32,
    /// When a transaction for it failed last, as then it is to be served by itself: the number of that attempt. 0: none did.
    pub apart: u64,
}

/// What a cell is used for.
#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Asked { trouble: Option<Trouble>, apart: u64 },
    Answered(Answer),
}

/// The cell of one process.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    state: State,
    ticket: Ticket,
    database: u32,
    source: u32,
    series: i64,
    day: i32,
    max_value: i64,
    /// Of the key, in `bytes`; a text has its own length.
    key_type: KeyType,
    len: u16,
    bytes: [u8; MAX_KEY_BYTES],
}

const _: () = assert!(MAX_KEY_BYTES <= u16::MAX as usize && MAX_KEY_BYTES >= size_of::<ShortKey>());

impl Request {
    /// A cell that asks for nothing.
    pub const EMPTY: Self = Self {
        state: State::Idle,
        ticket: Ticket(0),
        database: 0,
        source: 0,
        series: 0,
        day: 0,
        max_value: 0,
        key_type: KeyType::Bigint,
        len: 0,
        bytes: [0; MAX_KEY_BYTES],
    };

    fn key(&self) -> Option<Key> {
        let bytes = self.bytes.get(..self.len.into())?;
        Some(match self.key_type {
            KeyType::Bigint => Key::Bigint(i64::from_le_bytes(bytes.try_into().ok()?)),
            KeyType::Uuid => Key::Uuid(u128::from_le_bytes(bytes.try_into().ok()?)),
            KeyType::Text => Key::Text(bytes.into()),
        })
    }

    fn set_key(&mut self, key: &Key) -> Option<()> {
        let (number, uuid);
        let bytes: &[u8] = match key {
            Key::Bigint(key) => {
                number = key.to_le_bytes();
                &number
            }
            Key::Uuid(key) => {
                uuid = key.to_le_bytes();
                &uuid
            }
            Key::Text(text) => text,
        };
        self.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.len = u16::try_from(bytes.len()).ok()?;
        self.key_type = key.key_type();
        Some(())
    }

    fn pending(&self, cell: usize) -> Option<Pending> {
        let State::Asked { apart, .. } = self.state else { return None };
        let Self { ticket, source, series, day, .. } = *self;
        Some(Pending { cell, ticket, source, series, key: self.key()?, day, apart })
    }
}

/// The requests. All processes that share it share this value, too, not only the memory it works in.
#[derive(Debug)]
pub struct Requests<'m> {
    cells: &'m mut [Request],
    /// The last ticket.
    tickets: u64,
    /// How many are not answered.
    pending: usize,
    /// How many transactions for one key have failed.
    failures: u64,
}

impl<'m> Requests<'m> {
    /// Cells that ask for nothing, in this memory, whatever it held before.
    pub fn new(cells: &'m mut [Request]) -> Self {
        cells.fill(Request::EMPTY);
        Self { cells, tickets: 0, pending: 0, failures: 0 }
    }

    /// Asks for a number, in the process's own cell; None where there is no such cell, or the key has no room. What it asked
    /// before is withdrawn.
    pub fn ask(&mut self, cell: usize, asked: &Asked<'_>) -> Option<Ticket> {
        self.withdraw(cell);
        let request = self.cells.get_mut(cell)?;
        request.set_key(asked.key)?;
        self.tickets += 1;
        request.ticket = Ticket(self.tickets);
        (request.database, request.source) = (asked.database, asked.source);
        (request.series, request.day, request.max_value) = (asked.series, asked.day, asked.max_value);
        request.state = State::Asked { trouble: None, apart: 0 };
        self.pending += 1;
        Some(request.ticket)
    }

    /// The answer, once: the cell is free then. None while there is none.
    pub fn answer_to(&mut self, cell: usize, ticket: Ticket) -> Option<Answer> {
        let request = self.cells.get_mut(cell).filter(|request| request.ticket == ticket)?;
        let State::Answered(answer) = request.state else { return None };
        request.state = State::Idle;
        Some(answer)
    }

    /// What keeps a call from being answered.
    pub fn trouble(&self, cell: usize, ticket: Ticket) -> Option<Trouble> {
        match self.cells.get(cell)?.state {
            State::Asked { trouble, .. } if self.cells.get(cell)?.ticket == ticket => trouble,
            _ => None,
        }
    }

    /// The call does not wait any more: it is cancelled, or its process ends.
    pub fn withdraw(&mut self, cell: usize) {
        let Some(request) = self.cells.get_mut(cell) else { return };
        if matches!(request.state, State::Asked { .. }) {
            self.pending -= 1;
        }
        request.state = State::Idle;
    }

    /// How many are not answered.
    pub fn len(&self) -> usize {
        self.pending
    }

    /// Whether all are answered.
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// The databases whose requests are not answered; each once for every request.
    pub fn databases(&self) -> impl Iterator<Item = u32> {
        let cells = if self.is_empty() { &[] } else { &*self.cells };
        cells.iter().filter(|cell| matches!(cell.state, State::Asked { .. })).map(|cell| cell.database)
    }

    /// The requests of a database that are not answered, the oldest first. Its worker is there: that there is none is no trouble of
    /// theirs any more.
    pub fn take_up(&mut self, database: u32) -> Vec<Pending> {
        if !self.is_empty() {
            for request in self.cells.iter_mut().filter(|request| request.database == database) {
                if let State::Asked { trouble, .. } = &mut request.state
                    && matches!(trouble, Some(Trouble::NoWorker | Trouble::OutOfReach(_)))
                {
                    *trouble = None;
                }
            }
        }
        self.pending(database)
    }

    /// The requests of a database that are not answered, the oldest first.
    pub fn pending(&self, database: u32) -> Vec<Pending> {
        if self.is_empty() {
            return Vec::new();
        }
        let of = self.cells.iter().enumerate().filter(|(_, request)| request.database == database);
        let mut found: Vec<_> = of.filter_map(|(cell, request)| request.pending(cell)).collect();
        found.sort_by_key(|pending| pending.ticket);
        found
    }

    /// Whether a call still waits.
    pub fn waits(&self, cell: usize, ticket: Ticket) -> bool {
        let request = self.cells.get(cell);
        request.is_some_and(|request| {
            let is_it = request.ticket == ticket || !holds(Guard::SeriesTicket);
            is_it && matches!(request.state, State::Asked { .. })
        })
    }

    /// The highest number that a call can have; None where it does not wait any more.
    pub fn max_value(&self, cell: usize, ticket: Ticket) -> Option<i64> {
        self.waits(cell, ticket).then(|| self.cells.get(cell).map(|request| request.max_value))?
    }

    /// Answers a call; false: it does not wait any more.
    pub fn answer(&mut self, cell: usize, ticket: Ticket, answer: Answer) -> bool {
        if !self.waits(cell, ticket) {
            return false;
        }
        if let Some(request) = self.cells.get_mut(cell) {
            request.state = State::Answered(answer);
            self.pending -= 1;
        }
        true
    }

    /// Notes what keeps a call from being answered.
    pub fn note_trouble(&mut self, cell: usize, ticket: Ticket, found: Trouble) {
        if self.waits(cell, ticket)
            && let Some(Request { state: State::Asked { trouble, .. }, .. }) = self.cells.get_mut(cell)
        {
            *trouble = Some(found);
        }
    }

    /// Has the calls for a key served by themselves from here on, after those that have waited longer for that: a transaction for them
    /// failed.
    pub fn set_apart(&mut self, calls: &[(usize, Ticket)]) {
        self.failures += 1;
        for (cell, ticket) in calls {
            if self.waits(*cell, *ticket)
                && let Some(Request { state: State::Asked { apart, .. }, .. }) = self.cells.get_mut(*cell)
            {
                *apart = self.failures;
            }
        }
    }
}
