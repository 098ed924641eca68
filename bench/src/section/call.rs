//! What one call costs above the row it is made for.

use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::server;
use crate::session::{Cost, Session};
use crate::stats::{Spread, median};
use anyhow::{Result, ensure};
use std::time::Duration;

/// An expression that is evaluated once a row.
struct Call {
    label: &'static str,
    expression: &'static str,
    /// What `snowflake_ids.cache` is set to, for our own.
    cache: Option<u32>,
}

/// The row alone. A constant takes the place of the call, so that the call is the only difference.
const ROW: usize = 0;
const SNOWFLAKE: usize = 1;
const SNOWFLAKE_64: usize = 2;
const CLOCK: usize = 4;
const NEXTVAL: usize = 5;
/// Left out of the picture, where it would flatten all the others.
const UUID: usize = 7;

const CALLS: [Call; 8] = [
    Call { label: "a row without a call", expression: "1::bigint", cache: None },
    Call { label: "snowflake_nextval()", expression: "snowflake_nextval()", cache: Some(1) },
    Call { label: "snowflake_nextval(), cache = 64", expression: "snowflake_nextval()", cache: Some(64) },
    Call { label: "snowflake_nextval(), cache = 1000", expression: "snowflake_nextval()", cache: Some(1000) },
    Call { label: "clock_timestamp()", expression: "clock_timestamp()", cache: None },
    Call { label: "nextval, CACHE 1", expression: "nextval('one_by_one')", cache: None },
    Call { label: "nextval, CACHE 32", expression: "nextval('cache_32')", cache: None },
    Call { label: "gen_random_uuid()", expression: "gen_random_uuid()", cache: None },
];

/// Rows of one slice; a nested loop over two small sets, the cheapest source of rows that needs no table.
const ROWS: f64 = 100_000.0;

impl Call {
    fn query(&self) -> String {
        format!(
            "select count({}) from generate_series(1, 1000) a, generate_series(1, 100) b",
            self.expression
        )
    }

    fn slice(&self, session: &mut Session) -> Result<Cost> {
        if let Some(cache) = self.cache {
            session.execute(&format!("set snowflake_ids.cache = {cache}"))?;
            session.execute("select count(snowflake_nextval()) from generate_series(1, 2000)")?;
            let_the_clock_catch_up(session)?;
        }
        session.cost(&self.query())
    }
}

/// A loop takes ids faster than the ticks of the layout hold them; each slice starts without such a lead.
fn let_the_clock_catch_up(session: &mut Session) -> Result<()> {
    let ahead: f64 =
        session.value("select coalesce(extract(epoch from drift), 0)::float8 from snowflake_ids.status")?;
    std::thread::sleep(Duration::from_secs_f64(ahead.max(0.0)));
    Ok(())
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    for call in &CALLS {
        ensure!(session.plan(&call.query())? == session.plan(&CALLS[ROW].query())?, "the plans differ");
    }
    interleave(1, &CALLS, |call| call.slice(&mut session))?;
    let costs = interleave(effort.pick(60, 12), &CALLS, |call| call.slice(&mut session))?;
    Ok(outcome(&costs))
}

/// Nanoseconds of each call above the row, by round.
fn above_the_row(costs: &[Vec<Cost>], pick: impl Fn(&Cost) -> f64) -> Vec<Vec<f64>> {
    let per_round = |calls: &Vec<Cost>| {
        let pairs = calls.iter().zip(&costs[ROW]);
        pairs.map(|(call, row)| (pick(call) - pick(row)) / ROWS * 1e9).collect()
    };
    costs.iter().map(per_round).collect()
}

fn outcome(costs: &[Vec<Cost>]) -> Outcome {
    let cpu = above_the_row(costs, |cost| cost.cpu);
    let wall = above_the_row(costs, |cost| cost.wall);
    let row = median(costs[ROW].iter().map(|cost| cost.cpu / ROWS * 1e9));
    let to_clock = |call: usize| Spread::of_ratios(&cpu[call], &cpu[CLOCK]);
    let to_nextval = |call: usize| Spread::of_ratios(&cpu[call], &cpu[NEXTVAL]);

    let mut table = Table::new(&[
        "call",
        "ns of processor",
        "ns of wall time",
        "to clock_timestamp()",
        "to nextval CACHE 1",
    ]);
    let mut panel = Panel { title: "A call, ns of processor time".into(), bars: Vec::new() };
    for (place, call) in CALLS.iter().enumerate().skip(1) {
        let nanoseconds = median(cpu[place].iter().copied());
        table.rows.push(vec![
            call.label.into(),
            format!("{nanoseconds:.1}"),
            format!("{:.1}", median(wall[place].iter().copied())),
            to_clock(place).to_string(),
            to_nextval(place).to_string(),
        ]);
        if place != UUID {
            panel.bars.push(Bar { label: call.label.into(), value: nanoseconds, ours: call.cache.is_some() });
        }
    }
    Outcome {
        method: format!(
            "`select count(f())` over {ROWS:.0} rows less the same with a constant in place of `f()` (a row \
             alone: {row:.0} ns); one session, the same plan for all, {} rounds. Ratios are of processor time.",
            costs[ROW].len()
        ),
        tables: vec![table],
        goals: vec![
            ratio_goal("a call costs at most 1.6x clock_timestamp()", to_clock(SNOWFLAKE), 1.6),
            ratio_goal("a call costs at most 0.25x nextval CACHE 1", to_nextval(SNOWFLAKE), 0.25),
            ratio_goal("with cache = 64 it costs less than clock_timestamp()", to_clock(SNOWFLAKE_64), 1.0),
        ],
        panels: vec![panel],
    }
}

fn ratio_goal(claim: &'static str, ratio: Spread, bound: f64) -> Goal {
    Goal { claim, found: ratio.to_string(), verdict: Verdict::at_most(ratio, bound) }
}
