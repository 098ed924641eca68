//! Citus, as far as its catalog tells: whether this database is part of a cluster.

use crate::pg::statement::Statement;
use pgrx::spi::SpiError;

static IS_THERE: Statement =
    Statement::new("SELECT pg_catalog.to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL", &[]);

/// The coordinator is in group 0, and so is a server that belongs to no cluster.
static IS_WORKER: Statement = Statement::new(
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid OPERATOR(pg_catalog.<>) 0)",
    &[],
);

/// Whether this database is a worker's. Ids from its own tables would be those of others.
pub fn is_worker() -> Result<bool, SpiError> {
    Ok(is(&IS_THERE)? && is(&IS_WORKER)?)
}

fn is(question: &'static Statement) -> Result<bool, SpiError> {
    Ok(question.first(&[], |row| row.get::<bool>(1))?.flatten().unwrap_or(false))
}
