//! The size of the primary key's index after 8 concurrent sessions have inserted rows. Keys that arrive in order fill the index
//! pages. Blocks of ids for each session arrive out of order, and leave pages half empty.

use super::prelude::*;

const KEYS: [Key; 5] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::NEXTVAL, Key::NEXTVAL_32, Key::UUID];
const SNOWFLAKE: usize = 0;
const NEXTVAL: usize = 2;

const SESSIONS: usize = 8;
const ROWS_PER_INSERT: usize = 10;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let rows = effort.pick(1_000_000, 200_000);
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let mebibytes = interleave(1, &KEYS, |key| {
        session.execute(&key.create_table())?;
        insert(key, rows).run(&server)?;
        Ok(session.index_bytes(key.table)? / f64::from(1 << 20))
    })?;
    let size = |mebibytes: &f64| *mebibytes;
    let ratio = |key| mebibytes.ratio(key, NEXTVAL, size).median;
    Ok(Outcome {
        method: format!(
            "{SESSIONS} sessions insert {rows} rows in all, {ROWS_PER_INSERT} a statement, synchronous_commit \
             off."
        ),
        tables: vec![mebibytes.table(
            "key",
            mebibytes.all(),
            [
                ("MiB", &|key| format!("{:.1}", mebibytes.median(key, size))),
                ("to nextval CACHE 1", &|key| format!("{:.2}", ratio(key))),
            ],
        )],
        goals: vec![Goal::holds(
            "the index is as small as nextval CACHE 1 gives, within 3%",
            format!("{:.3}", ratio(SNOWFLAKE)),
            ratio(SNOWFLAKE) <= 1.03,
        )],
    })
}

fn insert(key: &Key, rows: usize) -> Load {
    let values = vec![format!("('{NOTE}')"); ROWS_PER_INSERT].join(", ");
    let statement = format!("insert into {} (note) values {values}", key.table);
    let settings = vec![
        ("snowflake_ids.cache", key.cache.to_string()),
        // Only the order in which rows arrive matters here. The order is tighter if commits do not wait.
        ("synchronous_commit", "off".into()),
    ];
    Load { settings, ..Load::new(SESSIONS, statement, Stop::Statements(rows / SESSIONS / ROWS_PER_INSERT)) }
}
