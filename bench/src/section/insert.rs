//! Inserts of one row each, as an application makes them, from 1, 8 and 32 sessions.

use crate::key::{Key, NOTE};
use crate::load::index_bytes;
use crate::pgbench::{Load, Pace, Stop};
use crate::report::{Bar, Goal, Outcome, Panel, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::server;
use crate::session::Session;
use crate::stats::{Spread, float, median};
use crate::wal;
use anyhow::Result;
use snowflake_ids_server_tests::Server;

const KEYS: [Key; 4] = [Key::SNOWFLAKE, Key::IDENTITY, Key::NEXTVAL_32, Key::UUID];
const SNOWFLAKE: usize = 0;
const IDENTITY: usize = 1;

/// How rows are inserted.
struct Setting {
    label: &'static str,
    sessions: usize,
    synchronous_commit: &'static str,
}

const SETTINGS: [Setting; 4] = [
    Setting { label: "1 session", sessions: 1, synchronous_commit: "on" },
    Setting { label: "8 sessions", sessions: 8, synchronous_commit: "on" },
    Setting { label: "32 sessions", sessions: 32, synchronous_commit: "on" },
    Setting { label: "32 sessions, synchronous_commit = off", sessions: 32, synchronous_commit: "off" },
];
const DURABLE_32: usize = 2;

/// What one slice did.
struct Slice {
    per_second: f64,
    rows: f64,
    wal: f64,
}

/// What the inserts of a key left behind.
struct Left {
    rows: f64,
    index: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    for key in &KEYS {
        session.execute(&key.create_table())?;
    }
    let (rounds, seconds) = effort.pick((5, 3), (2, 1));
    let mut slices = Vec::new();
    for setting in &SETTINGS {
        let mut run = |key: &Key| slice(&server, &mut session, setting, key, seconds);
        slices.push(interleave(rounds, &KEYS, &mut run)?);
    }
    let left = KEYS.iter().map(|key| left(&mut session, key)).collect::<Result<Vec<_>>>()?;
    Ok(outcome(&slices, &left))
}

fn slice(
    server: &Server,
    session: &mut Session,
    setting: &Setting,
    key: &Key,
    seconds: u32,
) -> Result<Slice> {
    let load = Load {
        sessions: setting.sessions,
        statement: format!("insert into {} (note) values ('{NOTE}')", key.table),
        settings: vec![
            ("snowflake_ids.cache", key.cache.to_string()),
            ("synchronous_commit", setting.synchronous_commit.into()),
        ],
        stop: Stop::Seconds(seconds),
        pace: Pace::default(),
    };
    session.execute("checkpoint")?;
    let wal = wal::bytes(session)?;
    let done = load.run(server)?;
    Ok(Slice { per_second: done.per_second, rows: done.statements, wal: float(wal::bytes(session)? - wal) })
}

fn left(session: &mut Session, key: &Key) -> Result<Left> {
    let rows: i64 = session.value(&format!("select count(*) from {}", key.table))?;
    Ok(Left { rows: float(rows), index: index_bytes(session, key)? })
}

fn outcome(slices: &[Vec<Vec<Slice>>], left: &[Left]) -> Outcome {
    let rates = |setting: usize, key: usize| -> Vec<f64> {
        slices[setting][key].iter().map(|slice| slice.per_second).collect()
    };
    let ratio = |setting, key| Spread::of_ratios(&rates(setting, key), &rates(setting, IDENTITY));
    Outcome {
        method: format!(
            "pgbench, prepared single-row inserts, one transaction each, a checkpoint before every slice, {} \
             slices of each. Full-page images after the checkpoint are part of the WAL.",
            slices[0][0].len()
        ),
        tables: vec![throughput(&rates, &ratio), sizes(slices, left)],
        goals: vec![Goal {
            claim: "32-session inserts are no slower than identity",
            found: format!("{} of its inserts/s", ratio(DURABLE_32, SNOWFLAKE)),
            verdict: Verdict::at_least(ratio(DURABLE_32, SNOWFLAKE), 1.0),
        }],
        panels: (0..SETTINGS.len()).map(|setting| panel(setting, &rates)).collect(),
    }
}

fn throughput(rates: &impl Fn(usize, usize) -> Vec<f64>, ratio: &impl Fn(usize, usize) -> Spread) -> Table {
    let mut table = Table::new(&["key", "sessions", "inserts/s", "to bigint identity"]);
    for (place, setting) in SETTINGS.iter().enumerate() {
        for (whose, key) in KEYS.iter().enumerate() {
            table.rows.push(vec![
                key.label.into(),
                setting.label.into(),
                format!("{:.0}", median(rates(place, whose))),
                ratio(place, whose).to_string(),
            ]);
        }
    }
    table
}

fn sizes(slices: &[Vec<Vec<Slice>>], left: &[Left]) -> Table {
    let mut table =
        Table::new(&["key", "rows in all", "index bytes / row", "WAL bytes / row, 1 session", "32 sessions"]);
    for (whose, key) in KEYS.iter().enumerate() {
        let wal = |setting: usize| {
            let of = &slices[setting][whose];
            let bytes: f64 = of.iter().map(|slice| slice.wal).sum();
            let rows: f64 = of.iter().map(|slice| slice.rows).sum();
            format!("{:.0}", bytes / rows)
        };
        let Left { rows, index } = left[whose];
        table.rows.push(vec![
            key.label.into(),
            format!("{rows:.0}"),
            format!("{:.1}", index / rows),
            wal(0),
            wal(DURABLE_32),
        ]);
    }
    table
}

fn panel(setting: usize, rates: &impl Fn(usize, usize) -> Vec<f64>) -> Panel {
    let bar = |(whose, key): (usize, &Key)| Bar {
        label: key.label.into(),
        value: median(rates(setting, whose)) / 1e3,
        ours: key.is_ours(),
    };
    Panel {
        title: format!("Inserts, {}, thousand rows/s", SETTINGS[setting].label),
        bars: KEYS.iter().enumerate().map(bar).collect(),
    }
}
