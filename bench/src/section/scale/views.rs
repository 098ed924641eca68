//! The views and the status page of a server whose memory is full of tags.

use crate::section::prelude::*;

const QUERIES: [(&str, &str); 4] = [
    ("attention", "select count(*) from snowflake_ids.attention"),
    ("report()", "select length(snowflake_ids.report()::text)"),
    ("status_page()", "select length(snowflake_ids.status_page())"),
    ("segment_status", "select count(standing) from snowflake_ids.segment_status"),
];
const ATTENTION: usize = 0;
const PAGE: usize = 2;
const STATUS: usize = 3;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let tags = effort.pick(100_000, 10_000);
    let server = server::start(&[("snowflake_ids.max_tags", &tags.to_string())])?;
    let mut session = Session::open(&server)?;
    session.execute(&format!(
        "insert into snowflake_ids.segment (tag) select 'tag ' || i from generate_series(2, {tags}) i"
    ))?;
    session.execute("vacuum analyze snowflake_ids.segment")?;
    session
        .execute(&format!("select count(segment_nextval('tag ' || i)) from generate_series(2, {tags}) i"))?;
    let costs = interleave(effort.pick(15, 5), &QUERIES, |(_, query)| session.cost(query))?;
    let seconds = |cost: &Cost| cost.wall;
    let to_status = |whose| costs.ratio(whose, STATUS, seconds);
    Ok(Outcome {
        method: format!("{tags} tags in memory, superuser, one session."),
        tables: vec![costs.table(
            "view",
            costs.all(),
            [
                ("s", &|whose| format!("{:.3}", costs.median(whose, seconds))),
                ("to segment_status", &|whose| to_status(whose).to_string()),
            ],
        )],
        goals: vec![
            Goal::at_most(
                "attention at 100,000 tags takes at most 0.1x the time of segment_status",
                to_status(ATTENTION),
                0.1,
                "",
            ),
            Goal::at_most(
                "status_page() at 100,000 tags takes at most 1.5x the time of segment_status",
                to_status(PAGE),
                1.5,
                "",
            ),
        ],
    })
}
