//! The table of forks: the promotions in the history of this database, and those that only nodes saw.

use crate::pg::error::ServerError;
use crate::pg::read_lock::Wait;
use crate::pg::report::raise;
use crate::pg::statement::Statement;
use crate::pg::{cluster, random, rows};
use crate::store::tables::FORK;
use pgrx::spi::SpiError;
use snowflake_ids_core::registry::forks::{Fork, Forks};

/// Waits for a transaction that records the fork of the same timeline, or the same fork.
static RECORD: Statement = Statement::new(
    "INSERT INTO snowflake_ids.fork (fork, system_identifier, timeline)
     VALUES ($1, snowflake_ids_internal.system_identifier(), $2) ON CONFLICT DO NOTHING",
);

/// Returns all forks that this cluster has recorded, without SQL.
pub fn all() -> Forks {
    let (here, mut forks) = (cluster::system_identifier().cast_signed(), Vec::new());
    let found = rows::look(&FORK, Wait::Yes(None), &[], |row| {
        let of_cluster = row.number(c"fork").filter(|_| row.number(c"system_identifier") == Some(here));
        let timeline = row.int(c"timeline").map(i32::cast_unsigned);
        forks.extend(of_cluster.map(|number| Fork { number, timeline }));
    });
    found.unwrap_or_else(|_| raise(ServerError::Dropped));
    Forks(forks)
}

/// Returns the fork of this server's timeline. The first call after a promotion draws the fork; `named` are the forks that a
/// node saw.
pub fn own(named: impl IntoIterator<Item = i64>) -> Result<Option<i64>, SpiError> {
    let (timeline, forks) = (cluster::timeline(), all());
    if timeline <= 1 || forks.of(timeline).is_some() {
        return Ok(forks.of(timeline));
    }
    let drawn = forks.draw(timeline, named, random::token());
    RECORD.run(&[drawn.into(), Some(timeline.cast_signed()).into()])?;
    Ok(all().of(timeline))
}

/// Returns the fork of this server's timeline. Before the first answer to a node, returns one that could be drawn, so that the
/// fork still differs from those that this node saw.
pub fn own_or_any() -> Option<i64> {
    let (timeline, forks) = (cluster::timeline(), all());
    forks.of(timeline).or_else(|| (timeline > 1).then(|| forks.draw(timeline, [], random::token())))
}

/// Records a fork that a node saw and that this database's history lacks.
pub fn record(fork: i64) -> Result<(), SpiError> {
    RECORD.run(&[fork.into(), None::<i32>.into()])
}
