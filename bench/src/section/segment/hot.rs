//! A tag that has adapted to its 32 sessions, beside a statement that does nothing.

use super::tag::{HOT, SESSIONS, Status, calls, create, status};
use crate::section::prelude::*;

const CALLS: [&str; 4] =
    ["select segment_nextval('hot')", "select 1", "select no_op(1)", "select nextval('one_by_one')"];
const SEGMENT: usize = 0;
const NOTHING: usize = 1;
const NO_OP: usize = 2;

pub fn measure(server: &Server, session: &mut Session, effort: Effort) -> Result<Outcome> {
    let (rounds, seconds) = effort.pick((12, 2), (4, 1));
    // A function in C that does almost nothing. Its cost is what Postgres does for every call.
    session.declare_again("snowflake_sequence(bigint)", "no_op(bigint) returns int volatile")?;
    create(session, HOT, 1_000)?;
    let in_turns = |rounds, seconds| {
        let run = |call: &&str| calls(call, Stop::Seconds(seconds)).run(server);
        interleave(rounds, &CALLS, run)
    };
    calls(CALLS[SEGMENT], Stop::Seconds(4)).run(server)?;
    in_turns(1, 1)?;
    let before = status(session, HOT)?;
    let slices = in_turns(rounds, seconds)?;
    Ok(outcome(&slices, &before, &status(session, HOT)?))
}

/// The outcome of all slices, with the tag before and after them.
fn outcome(slices: &Measured<Throughput>, before: &Status, after: &Status) -> Outcome {
    let rate = |slice: &Throughput| slice.per_second;
    let ratio = |call, other| slices.ratio(call, other, rate);
    let waits = after.waits - before.waits;
    let millions = slices.sum(SEGMENT, |slice| slice.statements) / 1e6;
    Outcome {
        method: format!(
            "pgbench, prepared statements, {SESSIONS} sessions, {} slices of each. `no_op` is a function in \
             C that does next to nothing. The tag was used for five seconds before; its step is {:.0} \
             ids in the end. Refills while it was measured: {:.0}.",
            slices.rounds(),
            after.step,
            after.refills - before.refills
        ),
        tables: vec![slices.table(
            "statement",
            slices.all(),
            [
                ("calls/s", &|call| format!("{:.0}", slices.median(call, rate))),
                ("to select 1", &|call| ratio(call, NOTHING).to_string()),
                ("to select no_op(1)", &|call| ratio(call, NO_OP).to_string()),
            ],
        )],
        goals: vec![
            Goal::at_least(
                "32 sessions on one tag make at least 0.95x the calls/s of `select 1`",
                ratio(SEGMENT, NOTHING),
                0.95,
                "",
            ),
            Goal::at_least(
                "and at least 0.95x those of a function in C that does next to nothing",
                ratio(SEGMENT, NO_OP),
                0.95,
                "",
            ),
            Goal::holds(
                "no caller waits once the step has adapted",
                format!("{waits:.0} waits in {millions:.1} million calls"),
                waits == 0.0,
            ),
        ],
    }
}
