//! The WAL that ids cause: a flush for every segment, not for every few ids.

use super::tag::{HOT, SESSIONS, calls, create, let_the_worker_leave};
use crate::section::prelude::*;
use std::thread;
use std::time::Duration;

/// A way to take ids, and the number of ids in a statement.
struct Source {
    label: &'static str,
    load: Load,
    ids: f64,
}

/// The WAL and the flushes that a million ids left behind.
struct Left {
    flushes: f64,
    bytes: f64,
    transaction_ids: f64,
}

pub fn measure(server: &Server, session: &mut Session, effort: Effort) -> Result<Outcome> {
    create(session, "durable", 1_000)?;
    let left = interleave(1, &sources(effort), |source| source.measure(server, session))?;
    let cell = |whose, figure: fn(&Left) -> f64| format!("{:.1}", left.median(whose, figure));
    Ok(Outcome {
        method: format!(
            "What ids leave in the WAL: a million from {SESSIONS} sessions, one a transaction; of the adapted \
             tag, whose segments are as large as that, 20 million."
        ),
        tables: vec![left.table(
            "a million ids of",
            left.all(),
            [
                ("WAL flushes", &|whose| cell(whose, |left| left.flushes)),
                ("WAL bytes", &|whose| cell(whose, |left| left.bytes)),
                ("transaction ids", &|whose| cell(whose, |left| left.transaction_ids)),
            ],
        )],
        ..Outcome::default()
    })
}

fn sources(effort: Effort) -> [Source; 4] {
    let each = Stop::Statements(effort.pick(1_000_000, 200_000) / SESSIONS);
    let one_by_one = |label, call| Source { label, load: calls(call, each), ids: 1.0 };
    let a_million = format!("select count(id) from segment_nextvals('{HOT}', 1000000) id");
    [
        one_by_one("a new tag, step 1000", "select segment_nextval('durable')"),
        Source { label: "the adapted tag", load: Load::new(1, a_million, Stop::Statements(20)), ids: 1e6 },
        one_by_one("nextval CACHE 1", "select nextval('one_by_one')"),
        one_by_one("nextval CACHE 1000", "select nextval('cache_1000')"),
    ]
}

impl Contestant for Source {
    fn label(&self) -> String {
        self.label.to_owned()
    }
}

impl Source {
    fn measure(&self, server: &Server, session: &mut Session) -> Result<Left> {
        all_is_reported(session)?;
        let before = (wal::flushes(session)?, wal::bytes(session)?, wal::transaction_ids(session)?);
        let millions = self.load.run(server)?.statements * self.ids / 1e6;
        all_is_reported(session)?;
        Ok(Left {
            flushes: (wal::flushes(session)? - before.0).count / millions,
            bytes: (wal::bytes(session)? - before.1) / millions,
            transaction_ids: (wal::transaction_ids(session)? - before.2) / millions,
        })
    }
}

/// Waits until all flushes are reported. The worker and the sessions report their flushes to the server's statistics when they
/// end, which takes a moment.
fn all_is_reported(session: &mut Session) -> Result<()> {
    let_the_worker_leave(session)?;
    thread::sleep(Duration::from_millis(200));
    Ok(())
}
