//! The number of ids that one SQL session gets in a second.

use super::prelude::*;

/// Ways to get a million ids: the name, the query, and the value of `snowflake_ids.cache`.
const SOURCES: [(&str, &str, u32); 5] = [
    (
        "snowflake_nextval()",
        "count(snowflake_nextval()) from generate_series(1, 1000) a, generate_series(1, 1000) b",
        1,
    ),
    (
        "snowflake_nextval(), cache = 1000",
        "count(snowflake_nextval()) from generate_series(1, 1000) a, generate_series(1, 1000) b",
        1000,
    ),
    ("snowflake_nextvals(1000000)", "count(id) from snowflake_nextvals(1000000) as id", 1),
    (
        "segment_nextvals('by_segment', 1000000)",
        "count(id) from segment_nextvals('by_segment', 1000000) as id",
        1,
    ),
    (
        "nextval, CACHE 1000",
        "count(nextval('cache_1000')) from generate_series(1, 1000) a, generate_series(1, 1000) b",
        1,
    ),
];
const CACHE_1000: usize = 1;
const SNOWFLAKES: usize = 2;
const SEGMENT: usize = 3;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let mut in_turns = |rounds| {
        interleave(rounds, &SOURCES, |(_, query, cache)| {
            session.execute(&format!("set snowflake_ids.cache = {cache}"))?;
            session.cost(&format!("select {query}"))
        })
    };
    in_turns(1)?;
    Ok(outcome(&in_turns(effort.pick(30, 5))?))
}

fn outcome(costs: &Measured<Cost>) -> Outcome {
    let by_wall = |cost: &Cost| 1.0 / cost.wall;
    let found = |whose| Spread::of(costs.figures(whose, by_wall));
    Outcome {
        method: format!(
            "A million ids in one statement that counts them, rows included; one session, drift allowed, {} \
             rounds.",
            costs.rounds()
        ),
        tables: vec![costs.table(
            "source",
            costs.all(),
            [
                ("million ids/s (quartiles)", &|whose| found(whose).to_string()),
                ("million ids/s of processor time", &|whose| {
                    format!("{:.2}", costs.median(whose, |cost| 1.0 / cost.cpu))
                }),
            ],
        )],
        goals: vec![
            Goal::at_least(
                "more than 6 million ids/s out of one session with cache = 1000",
                found(CACHE_1000),
                6.0,
                " million",
            ),
            Goal::at_most(
                "ids of segment_nextvals cost at most 1.1x those of snowflake_nextvals",
                costs.ratio(SEGMENT, SNOWFLAKES, |cost| cost.cpu),
                1.1,
                "",
            ),
        ],
    }
}
