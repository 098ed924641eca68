//! A table filled by one statement, `INSERT ... SELECT` or `COPY`. Postgres gathers rows into batches (multi-insert) unless a
//! column default is volatile and not `nextval`. COPY keeps the batches with this extension's ids. The section shows what the
//! batches save.

use super::prelude::*;

const INSERTED: [Key; 5] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::SEGMENT, Key::IDENTITY, Key::UUID];
const SNOWFLAKE: usize = 0;
const SEGMENT: usize = 2;
const COPIED: [Key; 5] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::SEGMENT, Key::IDENTITY, Key::PLAIN];
/// The index of `Key::IDENTITY` in `INSERTED` and in `COPIED`.
const IDENTITY: usize = 3;
/// Keys in tables without an index. An index would take more than half of the time.
const COPIED_BARE: [Key; 3] = [
    Key::SNOWFLAKE.without_index("bare_snowflake"),
    Key::SEGMENT.without_index("bare_segment"),
    Key::IDENTITY.without_index("bare_identity"),
];
const BARE_IDENTITY: usize = 2;

/// The cost of filling a table, and the data left on disk.
struct Load {
    cost: Cost,
    wal: f64,
    index: f64,
}

pub fn insert(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let rows = rows(effort);
    let loads = fill(&mut session, effort, &INSERTED, |key| {
        format!("insert into {} (note) select '{NOTE}' from generate_series(1, {rows})", key.table)
    })?;
    let goal = |claim, key| {
        Goal::at_most(claim, loads.ratio(key, IDENTITY, |load| load.cost.wall), 1.0, " of its time")
    };
    let goals = vec![
        goal("bulk insert is no slower than bigint identity", SNOWFLAKE),
        goal("bulk insert with ids of a segment is no slower than bigint identity", SEGMENT),
    ];
    let method = format!(
        "`INSERT ... SELECT` of {rows} rows into an empty table, a checkpoint before each; the keys take turns."
    );
    Ok(Outcome { method, goals, ..outcome(&loads, rows, IDENTITY) })
}

pub fn copy(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let rows = rows(effort);
    // The file is in the data directory. The server may write there, and the file is deleted with the directory.
    let folder: String = session.value("select current_setting('data_directory')")?;
    let source = format!("from generate_series(1, {rows})");
    session.execute(&format!("copy (select '{NOTE}' {source}) to '{folder}/notes.txt'"))?;
    session
        .execute(&format!("copy (select snowflake_nextval(), '{NOTE}' {source}) to '{folder}/rows.txt'"))?;
    let statement = |key: &Key| {
        let (columns, file) =
            if key.table == Key::PLAIN.table { ("id, note", "rows") } else { ("note", "notes") };
        format!("copy {} ({columns}) from '{folder}/{file}.txt'", key.table)
    };
    let keyed = fill(&mut session, effort, &COPIED, statement)?;
    let bare = fill(&mut session, effort, &COPIED_BARE, statement)?;
    let method = format!(
        "`COPY` of {rows} rows out of a file on the server into an empty table, the key by its default, a \
         checkpoint before each; the keys take turns. The second table's have no index."
    );
    let goal = |claim, loads: &Measured<Load>, key, identity, limit| {
        Goal::at_most(claim, loads.ratio(key, identity, |load| load.cost.wall), limit, " of its time")
    };
    let goals = vec![
        goal("COPY takes at most 0.9 times the time of bigint identity", &keyed, SNOWFLAKE, IDENTITY, 0.9),
        goal(
            "COPY with ids of a segment takes at most 0.9 times the time of bigint identity",
            &keyed,
            SEGMENT,
            IDENTITY,
            0.9,
        ),
        goal("without an index at most 0.85 times", &bare, 0, BARE_IDENTITY, 0.85),
        goal("without an index with ids of a segment at most 0.85 times", &bare, 1, BARE_IDENTITY, 0.85),
    ];
    let mut outcome = outcome(&keyed, rows, IDENTITY);
    outcome.tables.extend(self::outcome(&bare, rows, BARE_IDENTITY).tables);
    Ok(Outcome { method, goals, ..outcome })
}

/// The number of rows that a table is filled with.
fn rows(effort: Effort) -> u32 {
    effort.pick(1_000_000, 200_000)
}

/// Creates the tables of `keys` and fills them in turns with the statement that `statement` gives.
fn fill(
    session: &mut Session,
    effort: Effort,
    keys: &[Key],
    statement: impl Fn(&Key) -> String,
) -> Result<Measured<Load>> {
    keys.iter().try_for_each(|key| session.execute(&key.create_table()))?;
    let mut in_turns = |rounds| interleave(rounds, keys, |key| load(session, key, &statement(key)));
    in_turns(1)?;
    in_turns(effort.pick(7, 3))
}

/// Empties the key's table, writes out changes that earlier work left in memory, and runs the statement.
fn load(session: &mut Session, key: &Key, statement: &str) -> Result<Load> {
    session.execute(&format!("truncate {}", key.table))?;
    session.execute("checkpoint")?;
    session.execute(&format!("set snowflake_ids.cache = {}", key.cache))?;
    let before = wal::bytes(session)?;
    let cost = session.cost(statement)?;
    Ok(Load { cost, wal: wal::bytes(session)? - before, index: session.index_bytes(key.table)? })
}

fn outcome(loads: &Measured<Load>, rows: u32, identity: usize) -> Outcome {
    let seconds = |key, figure: fn(&Load) -> f64| format!("{:.2}", loads.median(key, figure));
    let ratio = |key, figure: fn(&Load) -> f64| loads.ratio(key, identity, figure).to_string();
    let a_row = |key, figure: fn(&Load) -> f64| loads.median(key, figure) / f64::from(rows);
    let table = loads.table(
        "key",
        loads.all(),
        [
            ("wall s", &|key| seconds(key, |load| load.cost.wall)),
            ("to bigint identity", &|key| ratio(key, |load| load.cost.wall)),
            ("processor s", &|key| seconds(key, |load| load.cost.cpu)),
            ("to bigint identity", &|key| ratio(key, |load| load.cost.cpu)),
            ("WAL bytes / row", &|key| format!("{:.0}", a_row(key, |load| load.wal))),
            ("index bytes / row", &|key| format!("{:.1}", a_row(key, |load| load.index))),
        ],
    );
    Outcome { tables: vec![table], ..Outcome::default() }
}
