//! `select f()` as a client calls it: one statement, one transaction, one round trip.

use crate::pgbench::{Load, Pace, Stop};
use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::server;
use crate::session::Session;
use crate::stats::{Spread, float, median};
use crate::wal::{self, Flushes};
use anyhow::Result;
use snowflake_ids_server_tests::Server;
use std::thread;
use std::time::Duration;

const CALLS: [&str; 4] =
    ["snowflake_nextval()", "nextval('one_by_one')", "clock_timestamp()", "gen_random_uuid()"];
const SNOWFLAKE: usize = 0;
const NEXTVAL: usize = 1;
const SESSIONS: [usize; 2] = [1, 8];

/// A call and the number of sessions that make it.
#[derive(Clone, Copy)]
struct Contestant {
    call: &'static str,
    sessions: usize,
}

/// What one slice did.
struct Slice {
    per_second: f64,
    calls: f64,
    flushes: Flushes,
    transaction_ids: f64,
}

/// All slices, by contestant and round.
struct Slices(Vec<Vec<Slice>>);

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&wal::ONLY_OURS)?;
    let mut session = Session::open(&server)?;
    let contestants: Vec<Contestant> =
        SESSIONS.iter().flat_map(|&sessions| CALLS.map(|call| Contestant { call, sessions })).collect();
    interleave(1, &contestants, |contestant| {
        slice(&server, &mut session, contestant, Stop::Statements(1_000))
    })?;
    let (rounds, seconds) = effort.pick((6, 2), (2, 1));
    let slices = interleave(rounds, &contestants, |contestant| {
        slice(&server, &mut session, contestant, Stop::Seconds(seconds))
    })?;
    Ok(Slices(slices).outcome(&contestants))
}

fn slice(server: &Server, session: &mut Session, contestant: &Contestant, stop: Stop) -> Result<Slice> {
    let load = Load {
        sessions: contestant.sessions,
        statement: format!("select {}", contestant.call),
        settings: Vec::new(),
        stop,
        pace: Pace::default(),
    };
    let (flushes, ids) = (wal::flushes(session)?, wal::transaction_ids(session)?);
    let done = load.run(server)?;
    // Sessions report what they flushed as they leave, which takes them a moment.
    thread::sleep(Duration::from_millis(200));
    Ok(Slice {
        per_second: done.per_second,
        calls: done.statements,
        flushes: wal::flushes(session)? - flushes,
        transaction_ids: float(wal::transaction_ids(session)? - ids),
    })
}

impl Slices {
    fn rates(&self, place: usize) -> Vec<f64> {
        self.0[place].iter().map(|slice| slice.per_second).collect()
    }

    /// Calls a second, as a ratio to those of nextval from as many sessions.
    fn to_nextval(&self, place: usize) -> Spread {
        let nextval = place / CALLS.len() * CALLS.len() + NEXTVAL;
        Spread::of_ratios(&self.rates(place), &self.rates(nextval))
    }

    fn sum(&self, place: usize, pick: impl Fn(&Slice) -> f64) -> f64 {
        self.0[place].iter().map(pick).sum()
    }

    /// What a flush of one session takes: it decides how much a call that flushes loses.
    fn flush_milliseconds(&self) -> f64 {
        self.sum(NEXTVAL, |s| s.flushes.time) / self.sum(NEXTVAL, |s| s.flushes.count) * 1e3
    }

    fn outcome(&self, contestants: &[Contestant]) -> Outcome {
        Outcome {
            method: format!(
                "pgbench, prepared statements, {} slices of each. Commits wait for the disk where they have \
                 something to write; a flush took {:.2} ms (nextval, 1 session).",
                self.0[0].len(),
                self.flush_milliseconds()
            ),
            tables: vec![self.table(contestants)],
            goals: self.goals(),
            panels: SESSIONS.iter().map(|&sessions| self.panel(contestants, sessions)).collect(),
        }
    }

    fn table(&self, contestants: &[Contestant]) -> Table {
        let mut table = Table::new(&[
            "call",
            "sessions",
            "calls/s",
            "to nextval CACHE 1",
            "flushes / 1000 calls",
            "transaction ids / 1000 calls",
        ]);
        for (place, contestant) in contestants.iter().enumerate() {
            let thousands = self.sum(place, |slice| slice.calls) / 1e3;
            table.rows.push(vec![
                contestant.call.into(),
                contestant.sessions.to_string(),
                format!("{:.0}", median(self.rates(place))),
                self.to_nextval(place).to_string(),
                format!("{:.2}", self.sum(place, |slice| slice.flushes.count) / thousands),
                format!("{:.2}", self.sum(place, |slice| slice.transaction_ids) / thousands),
            ]);
        }
        table
    }

    fn goals(&self) -> Vec<Goal> {
        let ours = SESSIONS.iter().enumerate().map(|(group, _)| group * CALLS.len() + SNOWFLAKE);
        let flushes: f64 = ours.clone().map(|place| self.sum(place, |slice| slice.flushes.count)).sum();
        let ids: f64 = ours.map(|place| self.sum(place, |slice| slice.transaction_ids)).sum();
        let ratio = self.to_nextval(SNOWFLAKE);
        vec![
            Goal {
                claim: "a durable select flushes nothing and uses no transaction id",
                found: format!("{flushes} flushes, {ids} transaction ids"),
                verdict: Verdict::of(flushes == 0.0 && ids == 0.0),
            },
            Goal {
                claim: "a durable select makes at least 5x the calls/s of nextval, 1 session",
                found: format!("{ratio}, a flush takes {:.2} ms", self.flush_milliseconds()),
                verdict: Verdict::at_least(ratio, 5.0),
            },
        ]
    }

    fn panel(&self, contestants: &[Contestant], sessions: usize) -> Panel {
        let these = contestants.iter().enumerate().filter(|(_, contestant)| contestant.sessions == sessions);
        Panel {
            title: format!("Durable select f(), thousand calls/s, sessions: {sessions}"),
            bars: these
                .map(|(place, contestant)| Bar {
                    label: contestant.call.into(),
                    value: median(self.rates(place)) / 1e3,
                    ours: contestant.call == CALLS[SNOWFLAKE],
                })
                .collect(),
        }
    }
}
