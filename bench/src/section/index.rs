//! How large the primary key's index is after 8 sessions have inserted rows side by side. Keys that arrive
//! in order fill its pages; blocks of a session's own arrive out of order and leave them half empty.

use crate::key::{Key, NOTE};
use crate::load::index_bytes;
use crate::pgbench::{Load, Pace, Stop};
use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::Effort;
use crate::server;
use crate::session::Session;
use anyhow::Result;
use snowflake_ids_server_tests::Server;

const KEYS: [Key; 5] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::NEXTVAL, Key::NEXTVAL_32, Key::UUID];
const SNOWFLAKE: usize = 0;
const NEXTVAL: usize = 2;

const SESSIONS: usize = 8;
const ROWS_PER_INSERT: usize = 10;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let rows = effort.pick(1_000_000, 200_000);
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let mut sizes = Vec::new();
    for key in &KEYS {
        session.execute(&key.create_table())?;
        insert(&server, key, rows)?;
        sizes.push(index_bytes(&mut session, key)?);
    }
    Ok(outcome(&sizes, rows))
}

fn insert(server: &Server, key: &Key, rows: usize) -> Result<()> {
    let values = vec![format!("('{NOTE}')"); ROWS_PER_INSERT].join(", ");
    let load = Load {
        sessions: SESSIONS,
        statement: format!("insert into {} (note) values {values}", key.table),
        settings: vec![
            ("snowflake_ids.cache", key.cache.to_string()),
            // The order in which rows arrive is what matters here, and it is the tighter without waits.
            ("synchronous_commit", "off".into()),
        ],
        stop: Stop::Statements(rows / SESSIONS / ROWS_PER_INSERT),
        pace: Pace::default(),
    };
    load.run(server).map(drop)
}

fn outcome(sizes: &[f64], rows: usize) -> Outcome {
    let ratio = |key: usize| sizes[key] / sizes[NEXTVAL];
    let mut table = Table::new(&["key", "MiB", "to nextval CACHE 1"]);
    let mut panel = Panel { title: format!("Index after {rows} rows, MiB"), bars: Vec::new() };
    for (place, key) in KEYS.iter().enumerate() {
        let mebibytes = sizes[place] / f64::from(1 << 20);
        table.rows.push(vec![key.label.into(), format!("{mebibytes:.1}"), format!("{:.2}", ratio(place))]);
        panel.bars.push(Bar { label: key.label.into(), value: mebibytes, ours: key.is_ours() });
    }
    Outcome {
        method: format!(
            "{SESSIONS} sessions insert {rows} rows in all, {ROWS_PER_INSERT} a statement, synchronous_commit \
             off."
        ),
        tables: vec![table],
        goals: vec![Goal {
            claim: "the index is as small as nextval CACHE 1 gives, within 3%",
            found: format!("{:.3}", ratio(SNOWFLAKE)),
            verdict: Verdict::of(ratio(SNOWFLAKE) <= 1.03),
        }],
        panels: vec![panel],
    }
}
