//! The cost of a UUID beyond the cost of the row for which it is made, compared with Postgres's own UUIDs.

use super::marginal::{self, Call, ROW, ROWS};
use super::prelude::*;

const UUID: usize = 1;
const RANDOM: usize = 5;
/// The index of `uuidv7()`, which only some servers have.
const OF_SERVER: usize = 6;

const CALLS: [Call; 7] = [
    Call::of("a row", "1::bigint"),
    Call::of("snowflake_uuid()", "snowflake_uuid()").cached(1),
    Call::of("snowflake_uuid(), cache = 64", "snowflake_uuid()").cached(64),
    Call::of("snowflake_uuid_text()", "snowflake_uuid_text()").cached(1),
    Call::of("snowflake_nextval()", "snowflake_nextval()").cached(1),
    Call::of("gen_random_uuid()", "gen_random_uuid()"),
    Call::of("uuidv7()", "uuidv7()"),
];

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let has_own: bool = session.value("select to_regproc('pg_catalog.uuidv7') is not null")?;
    let calls = if has_own { &CALLS[..] } else { &CALLS[..OF_SERVER] };
    let costs = marginal::measure(&mut session, calls, effort.pick(60, 12))?;
    let above = marginal::above_row(calls, &costs);
    let ratio = |whose, other| above.ratio(whose, other, |cost| cost.cpu);
    let to_random = |whose| ratio(whose, RANDOM).to_string();
    let goal = "snowflake_uuid() costs at most 0.15x gen_random_uuid()";
    Ok(Outcome {
        method: format!(
            "`select count(f())` over {ROWS:.0} rows less the same with a constant in place of `f()` (a row alone: {:.0} \
             ns); one session, the same plan, {} rounds. Ratios are of processor time.{}",
            marginal::row_alone(&costs, ROW),
            costs.rounds(),
            if has_own { "" } else { " This server has no `uuidv7()`, which came with PostgreSQL 18." }
        ),
        tables: vec![above.table(
            "call",
            above.all().filter(|whose| *whose != ROW),
            [
                ("ns of processor", &|whose| format!("{:.1}", above.median(whose, |cost| cost.cpu))),
                ("ns of wall time", &|whose| format!("{:.1}", above.median(whose, |cost| cost.wall))),
                ("to gen_random_uuid()", &to_random),
            ],
        )],
        goals: vec![Goal::at_most(goal, ratio(UUID, RANDOM), 0.15, "")],
    })
}
