//! `INSERT ... SELECT` of a million rows.

use crate::key::{Key, NOTE};
use crate::load::{Loads, rows};
use crate::report::{Goal, Outcome, Verdict};
use crate::rounds::Effort;
use crate::server;
use crate::session::Session;
use anyhow::Result;

const KEYS: [Key; 4] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::IDENTITY, Key::UUID];
const SNOWFLAKE: usize = 0;
const IDENTITY: usize = 2;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let rows = rows(effort);
    let loads = Loads::measure(&mut session, effort, &KEYS, |key| {
        format!("insert into {} (note) select '{NOTE}' from generate_series(1, {rows})", key.table)
    })?;
    let ratio = loads.ratio(SNOWFLAKE, IDENTITY);
    Ok(Outcome {
        method: format!(
            "`INSERT ... SELECT` of {rows} rows into an empty table, a checkpoint before each; the keys take \
             turns."
        ),
        tables: vec![loads.table(IDENTITY)],
        goals: vec![Goal {
            claim: "bulk insert is no slower than bigint identity",
            found: format!("{ratio} of its time"),
            verdict: Verdict::at_most(ratio, 1.0),
        }],
        panels: vec![loads.panel("INSERT ... SELECT")],
    })
}
