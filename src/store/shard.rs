//! The counters of a series on a Citus cluster. The counters are in a distributed table. The row of a key is on the same
//! shard as the user's rows of this key. Citus routes each change to this shard, within the caller's transaction.
//!
//! Statements run with the caller's rights, because the caller also writes its rows on this shard. Citus refuses a
//! transaction in which two roles write to one shard.

use super::series::{DatedNumber, datum, number};
use crate::pg::catalog::Source;
use crate::pg::relation::Relation;
use crate::pg::statement::changed;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::{self, Oid};
use pgrx::spi::SpiError;
use snowflake_ids_core::series::{Key, Series};
use snowflake_ids_core::tag::privilege::Access;
use std::ffi::CString;

/// Returns whether a role may perform `action` on the counters of a series. Returns true if the table is missing,
/// because a later step reports this fault.
pub fn allows(series: &Series, table: Source, action: Access, role: Oid) -> bool {
    let privilege = match action {
        Access::Take | Access::Own => pg_sys::ACL_INSERT,
        Access::Look => pg_sys::ACL_SELECT,
        Access::Move => pg_sys::ACL_UPDATE,
    };
    name(series)
        .and_then(|name| Relation::beside(table.oid(), &name))
        .is_none_or(|keys| keys.allows(privilege, role))
}

fn name(series: &Series) -> Option<CString> {
    CString::new(format!("series_keys_{:016x}", series.id)).ok()
}

/// The table of a series' counters, locked against DROP and RENAME until the transaction ends.
pub struct KeyTable(String);

impl KeyTable {
    /// Finds the table in the schema of the table of series. Returns None if the table is missing, or if it has another
    /// owner than the extension's tables. Triggers of another owner would run with the caller's rights.
    pub fn find(series: &Series, table: Source) -> Option<Self> {
        let name = name(series)?;
        let found = Relation::written_beside(table.oid(), &name)?;
        (found.owner() == table.owner()).then(|| Self(name.to_string_lossy().into_owned()))
    }

    /// Takes the next number of a key; None if no number is left. `day` is the first day of a dated series' period.
    pub fn next(
        &self,
        series: &Series,
        key: &Key,
        day: Option<i32>,
    ) -> Result<Option<DatedNumber>, SpiError> {
        self.put(
            "CASE WHEN k.period OPERATOR(pg_catalog.<) EXCLUDED.period THEN EXCLUDED.last_value
                 ELSE k.last_value OPERATOR(pg_catalog.+) 1 END",
            "k.last_value OPERATOR(pg_catalog.<) $4",
            &[datum(key), series.start.into(), day.into(), series.max_value.into()],
        )
    }

    /// Sets the counter of a key to a value. Without `force`, refuses a value below the key's last number of this period.
    /// Returns whether the counter was set.
    pub fn set(&self, key: &Key, day: Option<i32>, value: i64, force: bool) -> Result<bool, SpiError> {
        let put = self.put(
            "EXCLUDED.last_value",
            "$4 OR k.last_value OPERATOR(pg_catalog.<=) EXCLUDED.last_value",
            &[datum(key), value.into(), day.into(), force.into()],
        );
        Ok(put?.is_some())
    }

    /// Inserts the row of a key with the value `$2` and the day `$3`. If the row exists, sets the row's value to
    /// `last_value`, but only if `condition` is true or the row's period is over. Returns None if the row stays unchanged.
    fn put(
        &self,
        last_value: &str,
        condition: &str,
        arguments: &[DatumWithOid<'_>; 4],
    ) -> Result<Option<DatedNumber>, SpiError> {
        let sql = format!(
            "INSERT INTO snowflake_ids.{} AS k (key, last_value, period)
             VALUES ($1, $2, '1970-01-01'::pg_catalog.date OPERATOR(pg_catalog.+) $3::pg_catalog.int4)
             ON CONFLICT (key) DO UPDATE SET last_value = {last_value}, period = GREATEST(k.period, EXCLUDED.period)
             WHERE {condition} OR k.period OPERATOR(pg_catalog.<) EXCLUDED.period RETURNING {NUMBER}",
            self.0
        );
        changed(&sql, arguments, number)
    }

    /// Returns the last number of a key; None if the key has no counter.
    pub fn last(&self, key: &Key) -> Result<Option<DatedNumber>, SpiError> {
        let sql = format!(
            "SELECT {NUMBER} FROM snowflake_ids.{} AS k WHERE k.key OPERATOR(pg_catalog.=) $1",
            self.0
        );
        changed(&sql, &[datum(key)], number)
    }
}

/// The last value, and the first day of its period in days since 1970.
const NUMBER: &str = "k.last_value, k.period OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date";
