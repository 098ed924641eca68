//! The counters of a series that is distributed over a Citus cluster: a table of its own, a row for each key, on the shard of that
//! key's rows. Citus sends each change there, in the caller's transaction.
//!
//! Changes are the caller's own, with the caller's rights: Citus refuses two roles that write to one shard in one transaction, and
//! the caller writes its rows there.

use super::series::{Number, datum, number};
use crate::pg::catalog::Source;
use crate::pg::relation::Relation;
use crate::pg::statement::changed;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::{self, Oid};
use pgrx::spi::SpiError;
use snowflake_ids_core::sequence::privilege::Action;
use snowflake_ids_core::series::{Key, Series};
use std::ffi::CString;

/// Returns whether a role may do this with the counters of a series; also where they are not there, as another error
/// tells of that.
pub fn allows(series: &Series, table: Source, action: Action, role: Oid) -> bool {
    let privilege = match action {
        Action::Take | Action::Own => pg_sys::ACL_INSERT,
        Action::Look => pg_sys::ACL_SELECT,
        Action::Move => pg_sys::ACL_UPDATE,
    };
    name(series)
        .and_then(|name| Relation::beside(table.oid(), &name))
        .is_none_or(|keys| keys.allows(privilege, role))
}

fn name(series: &Series) -> Option<CString> {
    CString::new(format!("series_keys_{:016x}", series.id)).ok()
}

/// The table of a series' counters, which others can neither drop nor rename until the transaction ends.
pub struct KeyTable(String);

impl KeyTable {
    /// Looks for it beside the table of series. None where it is not there, or another role's: that one's triggers would run with
    /// the caller's rights.
    pub fn find(series: &Series, table: Source) -> Option<Self> {
        let name = name(series)?;
        let found = Relation::written_beside(table.oid(), &name)?;
        (found.owner() == table.owner()).then(|| Self(name.to_string_lossy().into_owned()))
    }

    /// Takes the next number of a key, in the present transaction; None where it has none left. `day` is the first day of the present
    /// period, where the series is dated.
    pub fn next(&self, series: &Series, key: &Key, day: Option<i32>) -> Result<Option<Number>, SpiError> {
        self.put(
            "CASE WHEN k.period OPERATOR(pg_catalog.<) EXCLUDED.period THEN EXCLUDED.last_value
                 ELSE k.last_value OPERATOR(pg_catalog.+) 1 END",
            "k.last_value OPERATOR(pg_catalog.<) $4",
            &[datum(key), series.start.into(), day.into(), series.max_value.into()],
        )
    }

    /// Sets a key to a value; unless `force`, not below the numbers that it has given in this period. Whether it was done.
    pub fn set(&self, key: &Key, day: Option<i32>, value: i64, force: bool) -> Result<bool, SpiError> {
        let put = self.put(
            "EXCLUDED.last_value",
            "$4 OR k.last_value OPERATOR(pg_catalog.<=) EXCLUDED.last_value",
            &[datum(key), value.into(), day.into(), force.into()],
        );
        Ok(put?.is_some())
    }

    /// Writes the row of a key: `$2` and day `$3` where it has none, else this last value where the condition holds, or the row is of a
    /// period that is over. None where neither does.
    fn put(
        &self,
        last_value: &str,
        condition: &str,
        arguments: &[DatumWithOid<'_>; 4],
    ) -> Result<Option<Number>, SpiError> {
        let sql = format!(
            "INSERT INTO snowflake_ids.{} AS k (key, last_value, period)
             VALUES ($1, $2, '1970-01-01'::pg_catalog.date OPERATOR(pg_catalog.+) $3::pg_catalog.int4)
             ON CONFLICT (key) DO UPDATE SET last_value = {last_value}, period = GREATEST(k.period, EXCLUDED.period)
             WHERE {condition} OR k.period OPERATOR(pg_catalog.<) EXCLUDED.period RETURNING {NUMBER}",
            self.0
        );
        changed(&sql, arguments, number)
    }

    /// Returns where a key is; None where it has no counter.
    pub fn last(&self, key: &Key) -> Result<Option<Number>, SpiError> {
        let sql = format!(
            "SELECT {NUMBER} FROM snowflake_ids.{} AS k WHERE k.key OPERATOR(pg_catalog.=) $1",
            self.0
        );
        changed(&sql, &[datum(key)], number)
    }
}

/// The number, and the day in days since 1970.
const NUMBER: &str = "k.last_value, k.period OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date";
