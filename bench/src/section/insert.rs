//! Single-row inserts, as an application makes them, from 1, 8 and 32 sessions.

use super::prelude::*;

const KEYS: [Key; 4] = [Key::SNOWFLAKE, Key::IDENTITY, Key::NEXTVAL_32, Key::UUID];
const SNOWFLAKE: usize = 0;
const IDENTITY: usize = 1;

/// Ways to insert rows: name, sessions, and `synchronous_commit`.
const SETTINGS: [(&str, usize, &str); 4] = [
    ("1 session", 1, "on"),
    ("8 sessions", 8, "on"),
    ("32 sessions", 32, "on"),
    ("32 sessions, synchronous_commit = off", 32, "off"),
];
const DURABLE_1: usize = 0;
const DURABLE_32: usize = 2;

/// The work of one slice.
struct Slice {
    per_second: f64,
    rows: f64,
    wal: f64,
}

/// The data that a key's inserts left behind.
struct Left {
    rows: f64,
    index: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    KEYS.iter().try_for_each(|key| session.execute(&key.create_table()))?;
    let (rounds, seconds) = effort.pick((5, 3), (2, 1));
    let mut slices = Vec::new();
    for (_, sessions, synchronous_commit) in SETTINGS {
        slices.push(interleave(rounds, &KEYS, |key| {
            let statement = format!("insert into {} (note) values ('{NOTE}')", key.table);
            let settings = vec![
                ("snowflake_ids.cache", key.cache.to_string()),
                ("synchronous_commit", synchronous_commit.into()),
            ];
            let load = Load { settings, ..Load::new(sessions, statement, Stop::Seconds(seconds)) };
            slice(&server, &mut session, &load)
        })?);
    }
    let left = interleave(1, &KEYS, |key| {
        let rows = session.value(&format!("select count(*)::float8 from {}", key.table))?;
        Ok(Left { rows, index: session.index_bytes(key.table)? })
    })?;
    Ok(outcome(&slices, &left))
}

fn slice(server: &Server, session: &mut Session, load: &Load) -> Result<Slice> {
    session.execute("checkpoint")?;
    let wal = wal::bytes(session)?;
    let done = load.run(server)?;
    Ok(Slice { per_second: done.per_second, rows: done.statements, wal: wal::bytes(session)? - wal })
}

/// The outcome of the slices of each setting.
fn outcome(slices: &[Measured<Slice>], left: &Measured<Left>) -> Outcome {
    Outcome {
        method: format!(
            "pgbench, prepared single-row inserts, one transaction each, a checkpoint before every slice, {} \
             slices of each. Full-page images after the checkpoint are part of the WAL.",
            slices[0].rounds()
        ),
        tables: vec![throughput(slices), sizes(slices, left)],
        goals: vec![Goal::at_least(
            "32-session inserts are no slower than identity",
            slices[DURABLE_32].ratio(SNOWFLAKE, IDENTITY, |slice| slice.per_second),
            1.0,
            " of its inserts/s",
        )],
    }
}

fn throughput(slices: &[Measured<Slice>]) -> Table {
    let rate = |slice: &Slice| slice.per_second;
    let table = |(slices, (setting, ..)): (&Measured<Slice>, &(&str, _, _))| {
        slices.table(
            "key",
            slices.all(),
            [
                ("sessions", &|_| (*setting).to_owned()),
                ("inserts/s", &|key| format!("{:.0}", slices.median(key, rate))),
                ("to bigint identity", &|key| slices.ratio(key, IDENTITY, rate).to_string()),
            ],
        )
    };
    slices.iter().zip(&SETTINGS).map(table).reduce(Table::followed_by).unwrap_or_default()
}

fn sizes(slices: &[Measured<Slice>], left: &Measured<Left>) -> Table {
    let wal = |setting: usize, key| {
        let bytes = slices[setting].sum(key, |slice| slice.wal);
        format!("{:.0}", bytes / slices[setting].sum(key, |slice| slice.rows))
    };
    left.table(
        "key",
        left.all(),
        [
            ("rows in all", &|key| format!("{:.0}", left.median(key, |left| left.rows))),
            ("index bytes / row", &|key| format!("{:.1}", left.median(key, |left| left.index / left.rows))),
            ("WAL bytes / row, 1 session", &|key| wal(DURABLE_1, key)),
            ("32 sessions", &|key| wal(DURABLE_32, key)),
        ],
    )
}
