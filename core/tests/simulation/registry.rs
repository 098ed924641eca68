//! The registry: rows of worker ids, changed by compare-and-swap alone, on a clock of its own.

use super::guards::{Guard, Guards};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::lease::{Choice, Row};
use std::collections::BTreeMap;

/// A row as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    pub row: Row,
    /// The tick that the holder had reached when it last renewed.
    pub last: UnixMicros,
}

/// The table.
#[derive(Clone, Default)]
pub struct Registry {
    pub rows: BTreeMap<u32, Stored>,
    /// How far its clock is off.
    pub offset: i64,
}

/// A statement that changes it.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Take a worker id, as it was found; and, where the rule of giving back last is left out, give one back.
    Take { choice: Choice, claim: i64, last: UnixMicros, release: Option<(u32, i64, UnixMicros)> },
    /// Move the expiry on.
    Renew { worker: u32, token: i64, claim: i64, last: UnixMicros },
    /// Give a worker id back from an instant on.
    Release { worker: u32, token: i64, expiry: UnixMicros },
}

/// Whether a statement changed the row that it was about, and what that says afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub changed: bool,
    pub row: Option<Row>,
}

impl Registry {
    pub fn read(&self) -> Vec<Row> {
        self.rows.values().map(|stored| stored.row).collect()
    }

    /// The latest tick that another holder told of.
    pub fn latest(&self, own: Option<i64>) -> Option<UnixMicros> {
        let others = |stored: &&Stored| stored.row.token.is_some() && stored.row.token != own;
        self.rows.values().filter(others).map(|stored| stored.last).max()
    }

    /// Runs a statement.
    pub fn run(&mut self, statement: &Statement, now: UnixMicros, length: i64, guards: Guards) -> Outcome {
        let unchecked = !guards.keep(Guard::CompareAndSwap);
        let until = UnixMicros(now.0 + length);
        let (worker, changed) = match *statement {
            Statement::Take { choice, claim, last, release } => {
                let taken = self.take(choice, claim, now, until, unchecked);
                if let Some(stored) = self.rows.get_mut(&choice.worker()).filter(|_| taken) {
                    stored.last = last;
                    if let Some((worker, token, expiry)) = release {
                        self.release(worker, token, expiry);
                    }
                }
                (choice.worker(), taken)
            }
            Statement::Renew { worker, token, claim, last } => {
                let own = |stored: &&mut Stored| unchecked || stored.row.token == Some(token);
                let stored = self.rows.get_mut(&worker).filter(own);
                let changed = stored.is_some();
                if let Some(stored) = stored {
                    stored.row.token = Some(claim);
                    stored.row.expiry = stored.row.expiry.max(until);
                    stored.last = last;
                }
                (worker, changed)
            }
            Statement::Release { worker, token, expiry } => (worker, self.release(worker, token, expiry)),
        };
        Outcome { changed, row: self.rows.get(&worker).map(|stored| stored.row) }
    }

    /// Keeps whoever holds a worker id from renewing it.
    pub fn forbid(&mut self, worker: u32) {
        if let Some(stored) = self.rows.get_mut(&worker) {
            stored.row.token = None;
        }
    }

    /// Gives back, from an instant on, whatever is not held by this token: its holders are down for good.
    pub fn free_others(&mut self, token: Option<i64>, expiry: UnixMicros) {
        for stored in self.rows.values_mut().filter(|stored| token.is_none() || stored.row.token != token) {
            stored.row.token = None;
            stored.row.expiry = stored.row.expiry.min(expiry);
        }
    }

    fn take(
        &mut self,
        choice: Choice,
        claim: i64,
        now: UnixMicros,
        until: UnixMicros,
        unchecked: bool,
    ) -> bool {
        let worker = choice.worker();
        let fresh = Row { worker, token: Some(claim), expiry: until, leased: now };
        let found = self.rows.get(&worker).map(|stored| stored.row);
        let row = match (choice, found) {
            (Choice::New { .. }, None) => fresh,
            (Choice::New { .. }, Some(_)) if unchecked => fresh,
            (Choice::Free(seen), Some(row)) if unchecked || row == seen => {
                // The clock may have been stepped back since the row was read.
                Row { expiry: until.max(row.expiry), leased: now.max(row.expiry), ..fresh }
            }
            (Choice::Own(seen), Some(row)) if unchecked || row.token == seen.token => {
                Row { token: Some(claim), expiry: row.expiry.max(until), ..row }
            }
            _ => return false,
        };
        self.rows.insert(worker, Stored { row, last: UnixMicros(0) });
        true
    }

    fn release(&mut self, worker: u32, token: i64, expiry: UnixMicros) -> bool {
        let stored = self.rows.get_mut(&worker).filter(|stored| stored.row.token == Some(token));
        let Some(stored) = stored else { return false };
        stored.row.token = None;
        stored.row.expiry = stored.row.expiry.min(expiry);
        true
    }
}
