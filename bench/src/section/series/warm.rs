//! The cost of a call for a key in memory, beyond the cost of the row for which it is made.

use crate::section::marginal::{self, Call, ROW, ROWS, TAGGED_ROW};
use crate::section::prelude::*;

const NEXTVAL: usize = 2;
const ONE_KEY: usize = 3;

const CALLS: [Call; 6] = [
    Call::of("a row", "1::bigint"),
    Call::by_tag("a row with a key", "key"),
    Call::of("nextval, CACHE 1", "nextval('one_by_one')"),
    Call::of("monotonic, one key", "series_nextval('monotonic', 7)"),
    Call::by_tag("monotonic, 1,000 keys", "series_nextval('monotonic', key)"),
    Call::of("monotonic, one key, a text", "series_nextval('monotonic of texts', 'conversation 7')"),
];

/// The series has steps of a million numbers, like a warm key whose step has grown. No slice therefore waits for the next step.
/// The keys take turns in the table. Without the vacuum, the table's first reader would set the rows' hint bits.
const PREPARE: [&str; 6] = [
    "select snowflake_ids.series_create('monotonic', 'monotonic', step => 1000000, max_step => 1000000),
            snowflake_ids.series_create('monotonic of texts', 'monotonic', 'text', step => 1000000, max_step => 1000000)",
    "create table tagged as select i % 1000 as key from generate_series(1, 100000::bigint) i",
    "vacuum (freeze, analyze) tagged",
    // The first call of a key makes the key's counter. The next calls get steps.
    "select count(series_nextval('monotonic', key)) from tagged",
    "select count(series_nextval('monotonic', key)) from tagged",
    "select count(series_nextval('monotonic of texts', 'conversation 7')) from generate_series(1, 100000)",
];

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    PREPARE.iter().try_for_each(|statement| session.execute(statement))?;
    Ok(outcome(&marginal::measure(&mut session, &CALLS, effort.pick(60, 12))?))
}

fn outcome(costs: &Measured<Cost>) -> Outcome {
    let above = marginal::above_row(&CALLS, costs);
    let row = |whose| marginal::row_alone(costs, whose);
    let to_nextval = |whose: usize| above.ratio(whose, NEXTVAL, |cost| cost.cpu);
    let calls = || above.all().filter(|whose| ![ROW, TAGGED_ROW].contains(whose));
    Outcome {
        method: format!(
            "Calls on keys that are in memory: `select count(f())` over {ROWS:.0} rows less the same without the call (a \
             row alone: {:.0} ns; a row with a key: {:.0} ns); one session, the same plan, {} rounds. The steps are a \
             million numbers. Ratios are of processor time.",
            row(ROW),
            row(TAGGED_ROW),
            costs.rounds()
        ),
        tables: vec![above.table(
            "call",
            calls(),
            [
                ("ns of processor", &|whose| format!("{:.1}", above.median(whose, |cost| cost.cpu))),
                ("ns of wall time", &|whose| format!("{:.1}", above.median(whose, |cost| cost.wall))),
                ("to nextval CACHE 1", &|whose| to_nextval(whose).to_string()),
            ],
        )],
        goals: vec![Goal::at_most(
            "monotonic: a call on a warm key costs at most 0.3x nextval CACHE 1",
            to_nextval(ONE_KEY),
            0.3,
            "",
        )],
    }
}
