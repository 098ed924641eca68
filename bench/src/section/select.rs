//! `select f()` as a client calls it: one statement, one transaction, one round trip.

use super::prelude::*;
use std::thread;
use std::time::Duration;

const CALLS: [&str; 4] =
    ["snowflake_nextval()", "nextval('one_by_one')", "clock_timestamp()", "gen_random_uuid()"];
const SNOWFLAKE: usize = 0;
const NEXTVAL: usize = 1;
const SESSIONS: [usize; 2] = [1, 8];

/// The work of one slice.
struct Slice {
    per_second: f64,
    calls: f64,
    flushes: Flushes,
    transaction_ids: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&wal::ONLY_OURS)?;
    let mut session = Session::open(&server)?;
    let contestants: Vec<(&str, usize)> =
        SESSIONS.iter().flat_map(|&sessions| CALLS.map(|call| (call, sessions))).collect();
    let mut in_turns = |rounds, stop| {
        interleave(rounds, &contestants, |(call, sessions)| {
            slice(&server, &mut session, &Load::new(*sessions, format!("select {call}"), stop))
        })
    };
    in_turns(1, Stop::Statements(1_000))?;
    let (rounds, seconds) = effort.pick((6, 2), (2, 1));
    Ok(outcome(&in_turns(rounds, Stop::Seconds(seconds))?))
}

fn slice(server: &Server, session: &mut Session, load: &Load) -> Result<Slice> {
    let (flushes, ids) = (wal::flushes(session)?, wal::transaction_ids(session)?);
    let done = load.run(server)?;
    // Sessions report their flushes when they end, which takes a moment.
    thread::sleep(Duration::from_millis(200));
    Ok(Slice {
        per_second: done.per_second,
        calls: done.statements,
        flushes: wal::flushes(session)? - flushes,
        transaction_ids: wal::transaction_ids(session)? - ids,
    })
}

fn outcome(slices: &Measured<Slice>) -> Outcome {
    let rate = |slice: &Slice| slice.per_second;
    let flushes = |slice: &Slice| slice.flushes.count;
    let ids = |slice: &Slice| slice.transaction_ids;
    // `nextval` with the same number of sessions.
    let nextval = |whose: usize| whose / CALLS.len() * CALLS.len() + NEXTVAL;
    let to_nextval = |whose| slices.ratio(whose, nextval(whose), rate);
    let in_thousand = |whose, figure: &dyn Fn(&Slice) -> f64| {
        format!("{:.2}", slices.sum(whose, figure) / slices.sum(whose, |slice| slice.calls) * 1e3)
    };
    // The duration of one session's flush decides how much time a call that flushes loses.
    let flush = slices.sum(NEXTVAL, |slice| slice.flushes.time) / slices.sum(NEXTVAL, flushes) * 1e3;
    let ours = |figure: &dyn Fn(&Slice) -> f64| -> f64 {
        slices.all().step_by(CALLS.len()).map(|first| slices.sum(first + SNOWFLAKE, figure)).sum()
    };
    Outcome {
        method: format!(
            "pgbench, prepared statements, {} slices of each. Commits wait for the disk where they have \
             something to write; a flush took {flush:.2} ms (nextval, 1 session).",
            slices.rounds()
        ),
        tables: vec![slices.table(
            "call",
            slices.all(),
            [
                ("sessions", &|whose| SESSIONS[whose / CALLS.len()].to_string()),
                ("calls/s", &|whose| format!("{:.0}", slices.median(whose, rate))),
                ("to nextval CACHE 1", &|whose| to_nextval(whose).to_string()),
                ("flushes / 1000 calls", &|whose| in_thousand(whose, &flushes)),
                ("transaction ids / 1000 calls", &|whose| in_thousand(whose, &ids)),
            ],
        )],
        goals: vec![
            Goal::holds(
                "a durable select flushes nothing and uses no transaction id",
                format!("{} flushes, {} transaction ids", ours(&flushes), ours(&ids)),
                ours(&flushes) == 0.0 && ours(&ids) == 0.0,
            ),
            Goal::at_least(
                "a durable select makes at least 1.3x the calls/s of nextval, 8 sessions",
                to_nextval(CALLS.len() + SNOWFLAKE),
                1.3,
                &format!(", a flush takes {flush:.2} ms"),
            ),
        ],
    }
}
