//! The cost of a call for an id of a named generator, beside a call for the server's own id.

use super::marginal::{self, Call, ROW, ROWS};
use super::prelude::*;

const OWN: usize = 1;
const OF_BROWSER: usize = 2;

const CALLS: [Call; 7] = [
    Call::of("a row", "1::bigint"),
    Call::of("snowflake_nextval()", "snowflake_nextval()").cached(1),
    Call::of("snowflake_nextval('web'), layout javascript", "snowflake_nextval('web')").cached(1),
    Call::of("snowflake_nextval('other'), widths as the server's", "snowflake_nextval('other')").cached(1),
    Call::of("snowflake_nextval('same'), layout of the server", "snowflake_nextval('same')").cached(1),
    Call::of("snowflake_nextval(), cache = 64", "snowflake_nextval()").cached(64),
    Call::of("snowflake_nextval('web'), cache = 64", "snowflake_nextval('web')").cached(64),
];

const PREPARE: [&str; 3] = [
    "select snowflake_ids.generator_create('web', 'javascript')",
    "select snowflake_ids.generator_create('other', '41/5/5/12 epoch=2021-01-01')",
    "select snowflake_ids.generator_create('same')",
];

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    PREPARE.iter().try_for_each(|statement| session.execute(statement))?;
    let costs = marginal::measure(&mut session, &CALLS, effort.pick(60, 12))?;
    let above = marginal::above_row(&CALLS, &costs);
    let ratio = |whose| above.ratio(whose, OWN, |cost| cost.cpu);
    let to_own = |whose| ratio(whose).to_string();
    let goal = "snowflake_nextval('web') costs at most 1.15x snowflake_nextval()";
    Ok(Outcome {
        method: format!(
            "`select count(f())` over {ROWS:.0} rows less the same with a constant in place of `f()` (a row alone: {:.0} \
             ns); one session, the same plan, {} rounds. Ratios are of processor time.",
            marginal::row_alone(&costs, ROW),
            costs.rounds(),
        ),
        tables: vec![above.table(
            "call",
            above.all().filter(|whose| *whose != ROW),
            [
                ("ns of processor", &|whose| format!("{:.1}", above.median(whose, |cost| cost.cpu))),
                ("ns of wall time", &|whose| format!("{:.1}", above.median(whose, |cost| cost.wall))),
                ("to snowflake_nextval()", &to_own),
            ],
        )],
        goals: vec![Goal::at_most(goal, ratio(OF_BROWSER), 1.15, "")],
    })
}
