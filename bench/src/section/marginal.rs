//! The cost of an expression, beyond the cost of the row for which it is evaluated.

use super::prelude::*;
use std::thread;
use std::time::Duration;

/// An expression that is evaluated once for each row.
pub struct Call {
    label: &'static str,
    expression: &'static str,
    /// Whether the rows come from a table in which 100 tags take turns. Other rows come from a nested loop over two small sets,
    /// the cheapest source that needs no table.
    tagged: bool,
    /// The value of `snowflake_ids.cache`, if it matters.
    cache: Option<u32>,
}

/// The number of rows in one slice.
pub const ROWS: f64 = 100_000.0;

/// The index of the rows without a call. A constant, or the tag itself, replaces the call there, so that the call is the only
/// difference.
pub const ROW: usize = 0;
/// The index of the rows with tags, if calls use the row's tag.
pub const TAGGED_ROW: usize = 1;

/// Measures in turns what calls cost, rows included. The first call must be [`ROW`]. The second call is [`TAGGED_ROW`] if there
/// are rows with tags.
pub fn measure(session: &mut Session, calls: &[Call], rounds: usize) -> Result<Measured<Cost>> {
    for call in calls {
        let row = &calls[call.row()];
        ensure!(session.plan(&call.query())? == session.plan(&row.query())?, "the plans differ");
    }
    let mut in_turns = |rounds| interleave(rounds, calls, |call| call.slice(session));
    in_turns(1)?;
    in_turns(rounds)
}

/// The cost of a call minus the cost of its row without the call, round by round, in nanoseconds.
pub fn above_row(calls: &[Call], costs: &Measured<Cost>) -> Measured<Cost> {
    costs.map(|whose, round, cost| {
        let row = costs.of[calls[whose].row()][round];
        Cost { cpu: (cost.cpu - row.cpu) / ROWS * 1e9, wall: (cost.wall - row.wall) / ROWS * 1e9 }
    })
}

/// The processor time of a row alone, in nanoseconds.
pub fn row_alone(costs: &Measured<Cost>, whose: usize) -> f64 {
    costs.median(whose, |cost| cost.cpu / ROWS * 1e9)
}

impl Contestant for Call {
    fn label(&self) -> String {
        self.label.to_owned()
    }
}

impl Call {
    /// A call whose rows need no table.
    pub const fn of(label: &'static str, expression: &'static str) -> Self {
        Self { label, expression, tagged: false, cache: None }
    }

    /// A call that uses the row's tag.
    pub const fn by_tag(label: &'static str, expression: &'static str) -> Self {
        Self { tagged: true, ..Self::of(label, expression) }
    }

    /// The call with this setting of `snowflake_ids.cache`.
    pub const fn cached(self, cache: u32) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// The index of the row without the call.
    const fn row(&self) -> usize {
        if self.tagged { TAGGED_ROW } else { ROW }
    }

    /// The query that evaluates the expression once per row. `count` has to evaluate the expression, to see whether it is null.
    fn query(&self) -> String {
        let source =
            if self.tagged { "tagged" } else { "generate_series(1, 1000) a, generate_series(1, 100) b" };
        format!("select count({}) from {source}", self.expression)
    }

    /// Measures the call once.
    fn slice(&self, session: &mut Session) -> Result<Cost> {
        if let Some(cache) = self.cache {
            session.execute(&format!("set snowflake_ids.cache = {cache}"))?;
            session.execute("select count(snowflake_nextval()) from generate_series(1, 2000)")?;
            let_the_clock_catch_up(session)?;
        }
        session.cost(&self.query())
    }
}

/// Waits until the clock has caught up, so that each slice starts without a lead. A loop takes ids faster than the layout's
/// ticks hold them.
fn let_the_clock_catch_up(session: &mut Session) -> Result<()> {
    let ahead: f64 = session.value(
        "select coalesce(extract(epoch from greatest(drift, (select max(drift) from snowflake_ids.generator_status))), 0)::float8
         from snowflake_ids.status",
    )?;
    thread::sleep(Duration::from_secs_f64(ahead.max(0.0)));
    Ok(())
}
