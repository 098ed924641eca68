//! What one call costs above the row it is made for.

mod contestants;

use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::server;
use crate::session::{Cost, Session};
use crate::stats::{Spread, median};
use anyhow::{Result, ensure};
use contestants::{
    CALLS, CLOCK, NEXTVAL, NEXTVAL_1000, ROWS, SEGMENT, SEGMENT_GRANTED, SEGMENT_OF_100, SNOWFLAKE,
    SNOWFLAKE_64, UUID,
};

/// The ratios that are shown: to which call, and its column's head.
const RATIOS: [(usize, &str); 3] = [
    (CLOCK, "to clock_timestamp()"),
    (NEXTVAL, "to nextval CACHE 1"),
    (NEXTVAL_1000, "to nextval CACHE 1000"),
];

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    contestants::prepare(&mut session)?;
    for call in &CALLS {
        let row = &CALLS[call.rows.baseline()];
        ensure!(session.plan(&call.query())? == session.plan(&row.query())?, "the plans differ");
    }
    interleave(1, &CALLS, |call| call.slice(&mut session))?;
    let costs = interleave(effort.pick(60, 12), &CALLS, |call| call.slice(&mut session))?;
    Ok(Costs { cpu: nanoseconds(&costs, |cost| cost.cpu), wall: nanoseconds(&costs, |cost| cost.wall) }
        .outcome())
}

/// Nanoseconds a row, by call and round.
fn nanoseconds(costs: &[Vec<Cost>], pick: impl Fn(&Cost) -> f64) -> Vec<Vec<f64>> {
    costs.iter().map(|rounds| rounds.iter().map(|cost| pick(cost) / ROWS * 1e9).collect()).collect()
}

/// Nanoseconds a row on a processor and in all, by call and round.
struct Costs {
    cpu: Vec<Vec<f64>>,
    wall: Vec<Vec<f64>>,
}

impl Costs {
    fn outcome(&self) -> Outcome {
        Outcome {
            method: self.method(),
            tables: vec![self.table()],
            goals: self.goals(),
            panels: vec![self.panel()],
        }
    }

    fn method(&self) -> String {
        let row = |place: usize| median(self.cpu[place].iter().copied());
        format!(
            "`select count(f())` over {ROWS:.0} rows less the same with a constant in place of `f()` (a row \
             alone: {:.0} ns), or with the tag alone where the rows hold 100 tags in turns (a row alone: {:.0} \
             ns); one session, the same plan, {} rounds. Each tag has given 100,000 ids before. Ratios are of \
             processor time.",
            row(contestants::ROW),
            row(contestants::TAGGED_ROW),
            self.cpu[contestants::ROW].len()
        )
    }

    fn table(&self) -> Table {
        let heads = ["call", "ns of processor", "ns of wall time"];
        let mut table =
            Table::new(&heads.into_iter().chain(RATIOS.map(|(_, head)| head)).collect::<Vec<_>>());
        for (place, call) in CALLS.iter().enumerate().filter(|(_, call)| !call.is_row()) {
            let mut cells = vec![
                call.label.into(),
                format!("{:.1}", median(above_the_row(&self.cpu, place))),
                format!("{:.1}", median(above_the_row(&self.wall, place))),
            ];
            cells.extend(RATIOS.map(|(other, _)| self.ratio(place, other).to_string()));
            table.rows.push(cells);
        }
        table
    }

    fn goals(&self) -> Vec<Goal> {
        let goal = |claim, call, other, bound| {
            let ratio = self.ratio(call, other);
            Goal { claim, found: ratio.to_string(), verdict: Verdict::at_most(ratio, bound) }
        };
        vec![
            goal("a call costs at most 1.6x clock_timestamp()", SNOWFLAKE, CLOCK, 1.6),
            goal("a call costs at most 0.25x nextval CACHE 1", SNOWFLAKE, NEXTVAL, 0.25),
            goal("with cache = 64 it costs less than clock_timestamp()", SNOWFLAKE_64, CLOCK, 1.0),
            goal("segment_nextval('tag') costs at most 0.15x nextval CACHE 1", SEGMENT, NEXTVAL, 0.15),
            goal("segment_nextval('tag') costs at most 1.1x nextval CACHE 1000", SEGMENT, NEXTVAL_1000, 1.1),
            goal("with one of 100 tags it costs at most 0.3x nextval CACHE 1", SEGMENT_OF_100, NEXTVAL, 0.3),
            goal("privileges on a tag add at most a tenth to a call", SEGMENT_GRANTED, SEGMENT, 1.1),
        ]
    }

    fn panel(&self) -> Panel {
        let shown = CALLS.iter().enumerate().filter(|&(place, call)| !call.is_row() && place != UUID);
        let bar = |(place, call): (usize, &contestants::Call)| Bar {
            label: call.label.into(),
            value: median(above_the_row(&self.cpu, place)),
            ours: call.is_ours(),
        };
        Panel { title: "A call, ns of processor time".into(), bars: shown.map(bar).collect() }
    }

    /// What a call costs above its row, as a ratio to what another one costs above its own.
    fn ratio(&self, call: usize, other: usize) -> Spread {
        Spread::of_ratios(&above_the_row(&self.cpu, call), &above_the_row(&self.cpu, other))
    }
}

/// Nanoseconds that a call takes above the row without it, by round.
fn above_the_row(nanoseconds: &[Vec<f64>], call: usize) -> Vec<f64> {
    let rows = &nanoseconds[CALLS[call].rows.baseline()];
    nanoseconds[call].iter().zip(rows).map(|(call, row)| call - row).collect()
}
