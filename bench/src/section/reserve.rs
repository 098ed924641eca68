//! The cost that calls pay for reserving time durably before its ids are issued. The figures are how often the state is synced,
//! by which process, and whether a call has to wait for the sync.

use super::prelude::*;
use std::time::Instant;

const SESSIONS: usize = 32;
/// The duration in milliseconds after which a call must have waited for something.
const LATE: u32 = 50;
const CALLS: [&str; 2] = ["select snowflake_nextval()", "select 1"];
const OURS: usize = 0;
const NOTHING: usize = 1;
/// The rate of a session that calls once in a while, in calls a second.
const NOW_AND_THEN: u32 = 20;
/// The default of `snowflake_ids.reserve`, in seconds.
const RESERVE: f64 = 3.0;

/// The work of a load, and the number of state writes during it.
struct Slice {
    done: Throughput,
    syncs: f64,
    by_callers: f64,
    seconds: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let load = |sessions, call, seconds| Load {
        late_after: Some(LATE),
        ..Load::new(sessions, call, Stop::Seconds(seconds))
    };
    let busy = interleave(effort.pick(8, 3), &CALLS, |call| {
        slice(&server, &mut session, &load(SESSIONS, *call, effort.pick(6, 3)))
    })?;
    let label = format!("{}, {NOW_AND_THEN} a second", CALLS[OURS]);
    let now_and_then = interleave(1, &[label.as_str()], |_| {
        let load = Load { per_second: Some(NOW_AND_THEN), ..load(1, CALLS[OURS], effort.pick(60, 15)) };
        slice(&server, &mut session, &load)
    })?;
    Ok(outcome(&busy, &now_and_then))
}

fn slice(server: &Server, session: &mut Session, load: &Load) -> Result<Slice> {
    let mut counts = || {
        session.values("select reservations::float8, reserved_by_callers::float8 from snowflake_ids.status")
    };
    let (before, started): ([f64; 2], _) = (counts()?, Instant::now());
    let done = load.run(server)?;
    let [syncs, by_callers] = counts()?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Slice { done, syncs: syncs - before[0], by_callers: by_callers - before[1], seconds })
}

fn outcome(busy: &Measured<Slice>, now_and_then: &Measured<Slice>) -> Outcome {
    let late = |call| busy.sum(call, |slice| slice.done.late);
    let table = |slices: &Measured<Slice>| {
        slices.table(
            "statement",
            slices.all(),
            [
                ("calls/s", &|call| format!("{:.0}", slices.median(call, |slice| slice.done.per_second))),
                ("late calls", &|call| format!("{:.0}", slices.sum(call, |slice| slice.done.late))),
                ("syncs / `reserve`", &|call| {
                    let syncs = slices.sum(call, |slice| slice.syncs);
                    format!("{:.2}", syncs * RESERVE / slices.sum(call, |slice| slice.seconds))
                }),
                ("syncs by callers", &|call| format!("{:.0}", slices.sum(call, |slice| slice.by_callers))),
            ],
        )
    };
    let by_callers = now_and_then.sum(0, |slice| slice.by_callers);
    Outcome {
        method: format!(
            "pgbench, prepared statements, {SESSIONS} sessions, {} slices of each; then one session with \
             {NOW_AND_THEN} calls a second. A call is late after {LATE} ms: `select 1` shows how often the machine \
             itself makes one so.",
            busy.rounds()
        ),
        tables: vec![table(busy).followed_by(table(now_and_then))],
        goals: vec![
            Goal::holds(
                "32 sessions have no more late calls than `select 1` has",
                format!("{:.0}, and {:.0}", late(OURS), late(NOTHING)),
                late(OURS) <= late(NOTHING),
            ),
            Goal::at_least(
                "they make at least 0.85x its calls/s",
                busy.ratio(OURS, NOTHING, |slice| slice.done.per_second),
                0.85,
                "",
            ),
            Goal::holds(
                "at 20 calls a second no call syncs",
                format!("{by_callers:.0} syncs"),
                by_callers == 0.0,
            ),
        ],
    }
}
