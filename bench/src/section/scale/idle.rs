//! A database that uses 900 tags in turn, while another database has nearly all slots and uses none of them.

use crate::section::prelude::*;
use crate::session::DATABASE;

const ROUND: &str = "select count(segment_nextval('tag ' || i)) from generate_series(1, 900) i";
const CREATE: &str =
    "insert into snowflake_ids.segment (tag) select 'tag ' || i from generate_series(1, 1000) i";

pub fn measure(effort: Effort) -> Result<Outcome> {
    let servers = [
        server::start(&[("snowflake_ids.max_tags", "1024")])?,
        server::start(&[("snowflake_ids.max_tags", "1024")])?,
    ];
    let mut sessions = [Session::open(&servers[0])?, Session::open(&servers[1])?];
    sessions.iter_mut().try_for_each(|session| session.execute(CREATE))?;
    let mut idle = servers[0].session()?;
    idle.batch_execute(CREATE)?;
    idle.batch_execute(
        "select count(segment_nextval('tag ' || i)) from generate_series(1, 1000) i, generate_series(1, 3)",
    )?;
    // Two rounds take the slots; further rounds grow the segments of tags that began with few ids.
    for session in &mut sessions {
        session.execute(ROUND)?;
        session.execute(ROUND)?;
    }
    let evictions = "select evictions::float8 from snowflake_ids_internal.segment_totals()";
    let before: f64 = sessions[0].value(evictions)?;
    for session in &mut sessions {
        session.execute("select count(segment_nextval('tag ' || i)) from generate_series(1, 1000) n, generate_series(1, 900) i")?;
    }
    let after: f64 = sessions[0].value(evictions)?;
    let contestants = [("beside an idle database", 0), ("alone", 1)];
    let rounds = interleave(effort.pick(100, 20), &contestants, |(_, whose)| sessions[*whose].cost(ROUND))?;
    let seconds = |cost: &Cost| cost.wall;
    let ratio = rounds.ratio(0, 1, seconds);
    Ok(Outcome {
        method: format!(
            "max_tags = 1024. Database {DATABASE} takes ids of 900 tags in turn; on one of two servers another database has taken \
             ids of 1,000 tags before, and is idle."
        ),
        tables: vec![rounds.table(
            "900 tags in turn",
            rounds.all(),
            [("µs a call", &|whose| format!("{:.2}", rounds.median(whose, |cost| cost.wall / 900.0 * 1e6)))],
        )],
        goals: vec![
            Goal::holds(
                "after two rounds, the tags of a busy database keep their slots",
                format!("{:.0} evictions", after - before),
                after <= before,
            ),
            Goal::at_most(
                "calls are then as fast as without the idle database, within a tenth",
                ratio,
                1.1,
                "",
            ),
        ],
    })
}
