//! What ids leave behind in the WAL: a flush for every segment, not for every few ids.

use super::hot::HOT;
use super::{SESSIONS, calls, tag};
use crate::pgbench::{Load, Pace, Stop};
use crate::report::{Outcome, Table};
use crate::rounds::Effort;
use crate::session::Session;
use crate::stats::float;
use crate::wal;
use anyhow::Result;
use snowflake_ids_server_tests::Server;
use std::thread;
use std::time::Duration;

/// A way to take ids.
struct Source {
    label: &'static str,
    load: Load,
    ids_per_statement: u32,
}

/// What a million ids left behind.
struct Left {
    flushes: f64,
    bytes: f64,
    transaction_ids: f64,
}

pub fn measure(server: &Server, session: &mut Session, effort: Effort) -> Result<Outcome> {
    tag::create(session, "durable", 1_000)?;
    let mut table = Table::new(&["a million ids of", "WAL flushes", "WAL bytes", "transaction ids"]);
    for source in sources(effort) {
        let left = source.measure(server, session)?;
        let figures = [left.flushes, left.bytes, left.transaction_ids];
        let cells = figures.map(|figure| format!("{figure:.1}"));
        table.rows.push([source.label.to_owned()].into_iter().chain(cells).collect());
    }
    Ok(Outcome {
        method: format!(
            "What ids leave in the WAL: a million from {SESSIONS} sessions, one a transaction; of the adapted \
             tag, whose segments are as large as that, 20 million."
        ),
        tables: vec![table],
        ..Outcome::default()
    })
}

fn sources(effort: Effort) -> [Source; 4] {
    let one_by_one = |label, call| Source {
        label,
        load: calls(call, Stop::Statements(effort.pick(1_000_000, 200_000) / SESSIONS)),
        ids_per_statement: 1,
    };
    let a_million = format!("select count(id) from segment_nextvals('{HOT}', 1000000) id");
    [
        one_by_one("a new tag, step 1000", "segment_nextval('durable')"),
        Source {
            label: "the adapted tag",
            load: Load {
                sessions: 1,
                statement: a_million,
                settings: Vec::new(),
                stop: Stop::Statements(20),
                pace: Pace::default(),
            },
            ids_per_statement: 1_000_000,
        },
        one_by_one("nextval CACHE 1", "nextval('one_by_one')"),
        one_by_one("nextval CACHE 1000", "nextval('cache_1000')"),
    ]
}

impl Source {
    fn measure(&self, server: &Server, session: &mut Session) -> Result<Left> {
        all_is_reported(session)?;
        let before = (wal::flushes(session)?, wal::bytes(session)?, wal::transaction_ids(session)?);
        let statements = self.load.run(server)?.statements;
        all_is_reported(session)?;
        let millions = statements * f64::from(self.ids_per_statement) / 1e6;
        Ok(Left {
            flushes: (wal::flushes(session)? - before.0).count / millions,
            bytes: float(wal::bytes(session)? - before.1) / millions,
            transaction_ids: float(wal::transaction_ids(session)? - before.2) / millions,
        })
    }
}

/// The worker and the sessions tell the server's statistics what they flushed as they leave, which takes
/// them a moment.
fn all_is_reported(session: &mut Session) -> Result<()> {
    tag::let_the_worker_leave(session)?;
    thread::sleep(Duration::from_millis(200));
    Ok(())
}
