//! A table filled by one statement: what `INSERT ... SELECT` and `COPY` share.

use crate::key::Key;
use crate::report::{Bar, Panel, Table};
use crate::rounds::{Effort, interleave};
use crate::session::{Cost, Session};
use crate::stats::{Spread, float, median};
use crate::wal;
use anyhow::Result;

/// What filling a table took and left.
struct Load {
    cost: Cost,
    wal: f64,
    index: f64,
}

/// What filling the tables of all keys took, by key and round.
pub struct Loads<'a> {
    keys: &'a [Key],
    rows: u32,
    taken: Vec<Vec<Load>>,
}

/// Rows that a table is filled with.
pub fn rows(effort: Effort) -> u32 {
    effort.pick(1_000_000, 200_000)
}

impl<'a> Loads<'a> {
    /// Creates the tables of `keys` and fills them in turns with the statement that `fill` gives.
    pub fn measure(
        session: &mut Session,
        effort: Effort,
        keys: &'a [Key],
        fill: impl Fn(&Key) -> String,
    ) -> Result<Self> {
        for key in keys {
            session.execute(&key.create_table())?;
        }
        let mut load = |key: &Key| load(session, key, &fill(key));
        interleave(1, keys, &mut load)?;
        let taken = interleave(effort.pick(7, 3), keys, &mut load)?;
        Ok(Self { keys, rows: rows(effort), taken })
    }

    /// Wall time as a ratio to that of another key.
    pub fn ratio(&self, place: usize, other: usize) -> Spread {
        self.ratio_of(place, other, |cost| cost.wall)
    }

    /// All figures, with ratios to the key at `reference`.
    pub fn table(&self, reference: usize) -> Table {
        let to = format!("to {}", self.keys[reference].label);
        let mut table =
            Table::new(&["key", "wall s", &to, "processor s", &to, "WAL bytes / row", "index bytes / row"]);
        for (place, key) in self.keys.iter().enumerate() {
            let middle = |pick: fn(&Load) -> f64| median(self.taken[place].iter().map(pick));
            table.rows.push(vec![
                key.label.into(),
                format!("{:.2}", middle(|load| load.cost.wall)),
                self.ratio(place, reference).to_string(),
                format!("{:.2}", middle(|load| load.cost.cpu)),
                self.ratio_of(place, reference, |cost| cost.cpu).to_string(),
                format!("{:.0}", middle(|load| load.wal) / f64::from(self.rows)),
                format!("{:.1}", middle(|load| load.index) / f64::from(self.rows)),
            ]);
        }
        table
    }

    /// Wall times as a picture.
    pub fn panel(&self, what: &str) -> Panel {
        let bar = |(key, loads): (&Key, &Vec<Load>)| Bar {
            label: key.label.into(),
            value: median(loads.iter().map(|load| load.cost.wall)),
            ours: key.is_ours(),
        };
        Panel {
            title: format!("{what} of {} rows, seconds", self.rows),
            bars: self.keys.iter().zip(&self.taken).map(bar).collect(),
        }
    }

    fn ratio_of(&self, place: usize, other: usize, pick: fn(&Cost) -> f64) -> Spread {
        let times = |key: usize| self.taken[key].iter().map(|load| pick(&load.cost)).collect::<Vec<_>>();
        Spread::of_ratios(&times(place), &times(other))
    }
}

/// Empties the key's table, writes out what earlier work left in memory, and runs the statement.
fn load(session: &mut Session, key: &Key, statement: &str) -> Result<Load> {
    session.execute(&format!("truncate {}", key.table))?;
    session.execute("checkpoint")?;
    session.execute(&format!("set snowflake_ids.cache = {}", key.cache))?;
    let before = wal::bytes(session)?;
    let cost = session.cost(statement)?;
    let wal = float(wal::bytes(session)? - before);
    Ok(Load { cost, wal, index: index_bytes(session, key)? })
}

/// The size of the key's primary-key index in bytes.
pub fn index_bytes(session: &mut Session, key: &Key) -> Result<f64> {
    session.value(&format!("select pg_relation_size('{}_pkey')", key.table)).map(float)
}
