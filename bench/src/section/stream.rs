//! How many ids one SQL session gets in a second.

use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::server;
use crate::session::{Cost, Session};
use crate::stats::{Spread, median};
use anyhow::Result;

/// A way to get many ids.
struct Source {
    label: &'static str,
    query: &'static str,
    cache: u32,
    ours: bool,
}

const CACHE_1000: usize = 1;

const SOURCES: [Source; 4] = [
    Source {
        label: "snowflake_nextval()",
        query: "select count(snowflake_nextval()) from generate_series(1, 1000) a, generate_series(1, 1000) b",
        cache: 1,
        ours: true,
    },
    Source {
        label: "snowflake_nextval(), cache = 1000",
        query: "select count(snowflake_nextval()) from generate_series(1, 1000) a, generate_series(1, 1000) b",
        cache: 1000,
        ours: true,
    },
    Source {
        label: "snowflake_nextvals(1000000)",
        query: "select count(id) from snowflake_nextvals(1000000) as id",
        cache: 1,
        ours: true,
    },
    Source {
        label: "nextval, CACHE 1000",
        query: "select count(nextval('cache_1000')) from generate_series(1, 1000) a, generate_series(1, 1000) b",
        cache: 1,
        ours: false,
    },
];

/// Ids that each query takes.
const IDS: f64 = 1e6;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let mut run = |source: &Source| {
        session.execute(&format!("set snowflake_ids.cache = {}", source.cache))?;
        session.cost(source.query)
    };
    interleave(1, &SOURCES, &mut run)?;
    let costs = interleave(effort.pick(30, 5), &SOURCES, &mut run)?;
    Ok(outcome(&costs))
}

fn outcome(costs: &[Vec<Cost>]) -> Outcome {
    let mut table = Table::new(&["source", "million ids/s (quartiles)", "million ids/s of processor time"]);
    let mut panel = Panel { title: "One session, million ids/s".into(), bars: Vec::new() };
    let millions = |source: usize| Spread::of(costs[source].iter().map(|cost| IDS / cost.wall / 1e6));
    for (place, source) in SOURCES.iter().enumerate() {
        let by_cpu = median(costs[place].iter().map(|cost| IDS / cost.cpu / 1e6));
        let by_wall = millions(place);
        table.rows.push(vec![source.label.into(), by_wall.to_string(), format!("{by_cpu:.2}")]);
        panel.bars.push(Bar { label: source.label.into(), value: by_wall.median, ours: source.ours });
    }
    let found = millions(CACHE_1000);
    Outcome {
        method: format!(
            "A million ids in one statement that counts them, rows included; one session, drift allowed, {} \
             rounds.",
            costs[CACHE_1000].len()
        ),
        tables: vec![table],
        goals: vec![Goal {
            claim: "more than 6 million ids/s out of one session with cache = 1000",
            found: format!("{found} million"),
            verdict: Verdict::at_least(found, 6.0),
        }],
        panels: vec![panel],
    }
}
