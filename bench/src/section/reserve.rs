//! What it costs calls that time is reserved durably before ids of it are issued: how often the state is
//! synced, by whom, and whether any call has to wait for it.

use crate::pgbench::{Load, Pace, Stop, Throughput};
use crate::report::{Goal, Outcome, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::server;
use crate::session::Session;
use crate::stats::{Spread, median};
use anyhow::Result;
use snowflake_ids_server_tests::Server;
use std::time::Instant;

const SESSIONS: usize = 32;
/// A call that takes longer waited for something.
const LATE: u32 = 50;
const CALLS: [&str; 2] = ["snowflake_nextval()", "1"];
const OURS: usize = 0;
const NOTHING: usize = 1;
/// A session that calls once in a while.
const NOW_AND_THEN: u32 = 20;
/// The default of `snowflake_ids.reserve`, in seconds.
const RESERVE: f64 = 3.0;

/// How often the state was written.
#[derive(Clone, Copy)]
struct Syncs {
    all: f64,
    by_callers: f64,
}

/// What a load left.
struct Slice {
    done: Throughput,
    syncs: Syncs,
    seconds: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let seconds = effort.pick(6, 3);
    let slices =
        interleave(effort.pick(8, 3), &CALLS, |call| slice(&server, &mut session, &busy(call, seconds)))?;
    let now_and_then = slice(&server, &mut session, &rare(effort.pick(60, 15)))?;
    Ok(outcome(&slices, &now_and_then))
}

fn busy(call: &str, seconds: u32) -> Load {
    Load {
        sessions: SESSIONS,
        statement: format!("select {call}"),
        settings: Vec::new(),
        stop: Stop::Seconds(seconds),
        pace: Pace { per_second: None, late_after: Some(LATE) },
    }
}

fn rare(seconds: u32) -> Load {
    let pace = Pace { per_second: Some(NOW_AND_THEN), late_after: Some(LATE) };
    Load { sessions: 1, pace, ..busy(CALLS[OURS], seconds) }
}

fn slice(server: &Server, session: &mut Session, load: &Load) -> Result<Slice> {
    let (before, started) = (syncs(session)?, Instant::now());
    let done = load.run(server)?;
    let after = syncs(session)?;
    let syncs = Syncs { all: after.all - before.all, by_callers: after.by_callers - before.by_callers };
    Ok(Slice { done, syncs, seconds: started.elapsed().as_secs_f64() })
}

fn syncs(session: &mut Session) -> Result<Syncs> {
    let [all, by_callers] = session
        .values("select reservations::float8, reserved_by_callers::float8 from snowflake_ids.status")?;
    Ok(Syncs { all, by_callers })
}

fn outcome(slices: &[Vec<Slice>], now_and_then: &Slice) -> Outcome {
    Outcome {
        method: format!(
            "pgbench, prepared statements, {SESSIONS} sessions, {} slices of each; then one session with \
             {NOW_AND_THEN} calls a second. A call is late after {LATE} ms: `select 1` shows how often the machine \
             itself makes one so.",
            slices[OURS].len()
        ),
        tables: vec![table(slices, now_and_then)],
        goals: goals(slices, now_and_then),
        panels: Vec::new(),
    }
}

fn table(slices: &[Vec<Slice>], now_and_then: &Slice) -> Table {
    let mut table =
        Table::new(&["statement", "calls/s", "late calls", "syncs / `reserve`", "syncs by callers"]);
    let mut row = |label: String, slices: &[Slice]| {
        table.rows.push(vec![
            label,
            format!("{:.0}", median(slices.iter().map(|slice| slice.done.per_second))),
            format!("{:.0}", sum(slices, |slice| slice.done.late)),
            format!("{:.2}", sum(slices, |s| s.syncs.all) * RESERVE / sum(slices, |s| s.seconds)),
            format!("{:.0}", sum(slices, |slice| slice.syncs.by_callers)),
        ]);
    };
    for (call, slices) in CALLS.iter().zip(slices) {
        row(format!("select {call}"), slices);
    }
    row(format!("select {}, {NOW_AND_THEN} a second", CALLS[OURS]), std::slice::from_ref(now_and_then));
    table
}

fn goals(slices: &[Vec<Slice>], now_and_then: &Slice) -> Vec<Goal> {
    let late = |call: usize| sum(&slices[call], |slice| slice.done.late);
    let rates = |call: usize| slices[call].iter().map(|slice| slice.done.per_second).collect::<Vec<_>>();
    let pace = Spread::of_ratios(&rates(OURS), &rates(NOTHING));
    let by_callers = now_and_then.syncs.by_callers;
    vec![
        Goal {
            claim: "32 sessions have no more late calls than `select 1` has",
            found: format!("{:.0}, and {:.0}", late(OURS), late(NOTHING)),
            verdict: Verdict::of(late(OURS) <= late(NOTHING)),
        },
        Goal {
            claim: "they make at least 0.95x its calls/s",
            found: pace.to_string(),
            verdict: Verdict::at_least(pace, 0.95),
        },
        Goal {
            claim: "at 20 calls a second no call syncs",
            found: format!("{by_callers:.0} syncs"),
            verdict: Verdict::of(by_callers == 0.0),
        },
    ]
}

fn sum(slices: &[Slice], figure: impl Fn(&Slice) -> f64) -> f64 {
    slices.iter().map(figure).sum()
}
