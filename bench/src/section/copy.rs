//! `COPY` of a million rows. Postgres gathers rows into batches (multi-insert) unless a column default is
//! volatile and not `nextval`; so a snowflake default goes row by row, and this says what that costs.

use crate::key::{Key, NOTE};
use crate::load::{Loads, rows};
use crate::report::Outcome;
use crate::rounds::Effort;
use crate::server;
use crate::session::Session;
use anyhow::Result;

const KEYS: [Key; 5] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::STABLE, Key::IDENTITY, Key::PLAIN];
const IDENTITY: usize = 3;

/// The two input files, in the data folder, where the server may write and which goes away with it.
struct Files {
    notes: String,
    rows: String,
}

impl Files {
    fn write(session: &mut Session, rows: u32) -> Result<Self> {
        let folder: String = session.value("select current_setting('data_directory')")?;
        let files = Self { notes: format!("{folder}/notes.txt"), rows: format!("{folder}/rows.txt") };
        let source = format!("from generate_series(1, {rows})");
        session.execute(&format!("copy (select '{NOTE}' {source}) to '{}'", files.notes))?;
        session
            .execute(&format!("copy (select snowflake_nextval(), '{NOTE}' {source}) to '{}'", files.rows))?;
        Ok(files)
    }

    fn copy(&self, key: &Key) -> String {
        if key.table == Key::PLAIN.table {
            format!("copy {} (id, note) from '{}'", key.table, self.rows)
        } else {
            format!("copy {} (note) from '{}'", key.table, self.notes)
        }
    }
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    // With this volatility multi-insert stays on.
    session.declare_again("snowflake_nextval()", "stable_nextval() returns bigint stable")?;
    let rows = rows(effort);
    let files = Files::write(&mut session, rows)?;
    let loads = Loads::measure(&mut session, effort, &KEYS, |key| files.copy(key))?;
    Ok(Outcome {
        method: format!(
            "`COPY` of {rows} rows out of a file on the server into an empty table, the key by its default, a \
             checkpoint before each; the keys take turns. Postgres inserts in batches unless a default is \
             volatile and not `nextval`; \"as if STABLE\" is the same function with batches on."
        ),
        tables: vec![loads.table(IDENTITY)],
        goals: Vec::new(),
        panels: vec![loads.panel("COPY")],
    })
}
