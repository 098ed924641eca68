//! `INSERT ... SELECT` of a million rows.

use crate::key::{Key, NOTE};
use crate::load::{Loads, rows};
use crate::report::{Goal, Outcome, Verdict};
use crate::rounds::Effort;
use crate::server;
use crate::session::Session;
use anyhow::Result;

const KEYS: [Key; 5] = [Key::SNOWFLAKE, Key::SNOWFLAKE_64, Key::SEGMENT, Key::IDENTITY, Key::UUID];
const SNOWFLAKE: usize = 0;
const SEGMENT: usize = 2;
const IDENTITY: usize = 3;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    let rows = rows(effort);
    let loads = Loads::measure(&mut session, effort, &KEYS, |key| {
        format!("insert into {} (note) select '{NOTE}' from generate_series(1, {rows})", key.table)
    })?;
    let goal = |claim, key| {
        let ratio = loads.ratio(key, IDENTITY);
        Goal { claim, found: format!("{ratio} of its time"), verdict: Verdict::at_most(ratio, 1.0) }
    };
    Ok(Outcome {
        method: format!(
            "`INSERT ... SELECT` of {rows} rows into an empty table, a checkpoint before each; the keys take \
             turns."
        ),
        tables: vec![loads.table(IDENTITY)],
        goals: vec![
            goal("bulk insert is no slower than bigint identity", SNOWFLAKE),
            goal("bulk insert with ids of a segment is no slower than bigint identity", SEGMENT),
        ],
        panels: vec![loads.panel("INSERT ... SELECT")],
    })
}
