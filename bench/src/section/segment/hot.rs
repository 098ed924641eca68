//! A tag that has adapted to its 32 sessions, beside a statement that does nothing.

use super::tag::{self, Status};
use super::{SESSIONS, calls};
use crate::key::is_ours;
use crate::pgbench::{Stop, Throughput};
use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::session::Session;
use crate::stats::{Spread, median};
use anyhow::Result;
use snowflake_ids_server_tests::Server;

/// The tag.
pub const HOT: &str = "hot";

const CALLS: [&str; 4] = ["segment_nextval('hot')", "1", "no_op(1)", "nextval('one_by_one')"];
const SEGMENT: usize = 0;
const NOTHING: usize = 1;
const NO_OP: usize = 2;

/// All slices by call and round, and the tag before and after them.
struct Hot {
    slices: Vec<Vec<Throughput>>,
    before: Status,
    after: Status,
}

pub fn measure(server: &Server, session: &mut Session, effort: Effort) -> Result<Outcome> {
    let (rounds, seconds) = effort.pick((12, 2), (4, 1));
    // A function in C that does next to nothing: what is left is what Postgres does for every call.
    session.declare_again("snowflake_sequence(bigint)", "no_op(bigint) returns int volatile")?;
    tag::create(session, HOT, 1_000)?;
    calls(CALLS[SEGMENT], Stop::Seconds(4)).run(server)?;
    interleave(1, &CALLS, |call| calls(call, Stop::Seconds(1)).run(server))?;
    let before = tag::status(session, HOT)?;
    let slices = interleave(rounds, &CALLS, |call| calls(call, Stop::Seconds(seconds)).run(server))?;
    let after = tag::status(session, HOT)?;
    Ok(Hot { slices, before, after }.outcome())
}

impl Hot {
    fn rates(&self, call: usize) -> Vec<f64> {
        self.slices[call].iter().map(|slice| slice.per_second).collect()
    }

    /// Calls a second, as a ratio to those of another statement.
    fn ratio(&self, call: usize, other: usize) -> Spread {
        Spread::of_ratios(&self.rates(call), &self.rates(other))
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            method: format!(
                "pgbench, prepared statements, {SESSIONS} sessions, {} slices of each. `no_op` is a function in \
                 C that does next to nothing. The tag was used for five seconds before; its step is {:.0} \
                 ids in the end. Refills while it was measured: {:.0}.",
                self.slices[SEGMENT].len(),
                self.after.step,
                self.after.refills - self.before.refills
            ),
            tables: vec![self.table()],
            goals: self.goals(),
            panels: vec![self.panel()],
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&["statement", "calls/s", "to select 1", "to select no_op(1)"]);
        for (place, call) in CALLS.iter().enumerate() {
            table.rows.push(vec![
                format!("select {call}"),
                format!("{:.0}", median(self.rates(place))),
                self.ratio(place, NOTHING).to_string(),
                self.ratio(place, NO_OP).to_string(),
            ]);
        }
        table
    }

    fn goals(&self) -> Vec<Goal> {
        let as_fast = |claim, other| {
            let ratio = self.ratio(SEGMENT, other);
            Goal { claim, found: ratio.to_string(), verdict: Verdict::at_least(ratio, 0.95) }
        };
        let waits = self.after.waits - self.before.waits;
        let calls = self.slices[SEGMENT].iter().map(|slice| slice.statements).sum::<f64>() / 1e6;
        vec![
            as_fast("32 sessions on one tag make at least 0.95x the calls/s of `select 1`", NOTHING),
            as_fast("and at least 0.95x those of a function in C that does next to nothing", NO_OP),
            Goal {
                claim: "no caller waits once the step has adapted",
                found: format!("{waits:.0} waits in {calls:.1} million calls"),
                verdict: Verdict::of(waits == 0.0),
            },
        ]
    }

    fn panel(&self) -> Panel {
        let bar = |(place, call): (usize, &&str)| Bar {
            label: format!("select {call}"),
            value: median(self.rates(place)) / 1e3,
            ours: is_ours(call),
        };
        Panel {
            title: format!("{SESSIONS} sessions, thousand calls/s"),
            bars: CALLS.iter().enumerate().map(bar).collect(),
        }
    }
}
