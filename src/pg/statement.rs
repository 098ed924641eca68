//! SQL statements. Most are planned once in each process. Some are planned for each run, because the best plan depends on
//! the size of the tables.
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]

use super::error::ServerError;
use super::guc;
use super::per_process::PerProcess;
use super::report;
use super::server;
use super::text::TextOut;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiClient, SpiError, SpiHeapTupleData, SpiTupleTable};
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;

/// A statement with its cached plan.
pub struct Statement {
    sql: &'static str,
    planning: Planning,
    kept: PerProcess<RefCell<Option<OwnedPreparedStatement>>>,
}

/// When and how a statement is planned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planning {
    Once,
    ByIndexes,
    EachRun,
}

impl Statement {
    /// Declares a statement. Names in the SQL are schema-qualified or belong to `pg_catalog`.
    pub const fn new(sql: &'static str) -> Self {
        Self::planned(sql, Planning::Once)
    }

    /// Declares a statement that finds few rows by indexes. Its plan suits tables of any size, and also arrays as arguments, for
    /// which the server would otherwise plan each run.
    pub const fn of_few(sql: &'static str) -> Self {
        Self::planned(sql, Planning::ByIndexes)
    }

    /// Declares a statement that is planned for each run. A plan that was cached while its table was empty would later
    /// scan the whole table.
    pub const fn of_many(sql: &'static str) -> Self {
        Self::planned(sql, Planning::EachRun)
    }

    const fn planned(sql: &'static str, planning: Planning) -> Self {
        Self { sql, planning, kept: PerProcess::new(RefCell::new(None)) }
    }

    /// Runs the statement in the current transaction, and ignores its rows.
    pub fn run(&self, arguments: &[DatumWithOid<'_>]) -> Result<(), SpiError> {
        self.first(arguments, |_| Ok(())).map(drop)
    }

    /// Runs the statement and reads its first row; None if there is no row.
    pub fn first<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(&SpiHeapTupleData<'_>) -> Result<T, SpiError>,
    ) -> Result<Option<T>, SpiError> {
        self.with_rows(arguments, |rows| rows.into_iter().next().map(|row| read(&row)).transpose())
    }

    /// Runs the statement and reads all of its rows.
    pub fn all<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        mut read: impl FnMut(&SpiHeapTupleData<'_>) -> Result<T, SpiError>,
    ) -> Result<Vec<T>, SpiError> {
        self.with_rows(arguments, |rows| rows.into_iter().map(|row| read(&row)).collect())
    }

    /// Runs the statement and returns the first column of its first row; None if there is no row, or a null.
    pub fn value<T: FromDatum + IntoDatum>(
        &self,
        arguments: &[DatumWithOid<'_>],
    ) -> Result<Option<T>, SpiError> {
        self.first(arguments, |row| row.get::<T>(1)).map(Option::flatten)
    }

    /// Runs the statement, whose rows are JSON, and reads all of its rows.
    pub fn json<T: DeserializeOwned>(&self, arguments: &[DatumWithOid<'_>]) -> Result<Vec<T>, ErrorReport> {
        let texts = self.all(arguments, |row| row.get::<TextOut>(1)).map_err(report::spi)?;
        let read = |text: TextOut| {
            serde_json::from_str(&text.to_utf8_lossy())
                .map_err(|error| ServerError::Facts { error: error.to_string() }.into())
        };
        texts.into_iter().flatten().map(read).collect()
    }

    /// Runs the statement that this statement writes, in the encoding of the database. Returns false if it writes none.
    pub fn execute(&self, arguments: &[DatumWithOid<'_>]) -> Result<bool, SpiError> {
        let written = self.value::<TextOut>(arguments)?;
        let Some(sql) = written.and_then(|sql| CString::new(sql.as_bytes()).ok()) else { return Ok(false) };
        connect_mut(|client| client.update(&*sql, None, &[]).map(|_| true))
    }

    fn with_rows<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(SpiTupleTable<'_>) -> Result<T, SpiError>,
    ) -> Result<T, SpiError> {
        if self.planning == Planning::ByIndexes {
            guc::planned_by_indexes(|| self.with_rows_of_plan(arguments, read))
        } else {
            self.with_rows_of_plan(arguments, read)
        }
    }

    fn with_rows_of_plan<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(SpiTupleTable<'_>) -> Result<T, SpiError>,
    ) -> Result<T, SpiError> {
        server::refuse_during_recovery();
        connect_mut(|client| {
            // A trigger that the statement fires may run the same statement while the plan is borrowed.
            let Some(mut kept) =
                self.kept.try_borrow_mut().ok().filter(|_| self.planning != Planning::EachRun)
            else {
                return read(client.update(self.sql, None, arguments)?);
            };
            let plan = match &mut *kept {
                Some(plan) => plan,
                empty => {
                    // Each argument has the same type in all runs, because Rust's type determines it.
                    let types: Vec<_> =
                        arguments.iter().map(|argument| PgOid::from(argument.oid())).collect();
                    empty.insert(client.prepare_mut(self.sql, &types)?.keep())
                }
            };
            read(client.update(&*plan, None, arguments)?)
        })
    }
}

/// Connects to SPI. Removes the CONTEXT of SQL errors, because the CONTEXT names internal functions that no user calls.
fn connect_mut<T>(work: impl FnOnce(&mut SpiClient<'_>) -> Result<T, SpiError>) -> Result<T, SpiError> {
    PgTryBuilder::new(AssertUnwindSafe(|| Spi::connect_mut(work)))
        .catch_others(|error| CaughtError::ErrorReport(report::take(error)).rethrow())
        .execute()
}

/// Plans and runs a statement. Returns the bigint in the first column of its first row; None if there is no row.
pub fn number(sql: &CStr) -> Result<Option<i64>, SpiError> {
    server::refuse_during_recovery();
    Spi::connect_mut(|client| {
        let rows = client.update(sql, Some(1), &[])?;
        rows.into_iter().next().map_or(Ok(None), |row| row.get::<i64>(1))
    })
}

/// Plans and runs a statement that only reads. Returns the text in the first column of its first row; None if there is
/// no row. Also works during recovery.
pub fn text(sql: &CStr) -> Result<Option<TextOut>, SpiError> {
    Spi::connect(|client| {
        let rows = client.select(sql, None, &[])?;
        rows.into_iter().next().map_or(Ok(None), |row| row.get::<TextOut>(1))
    })
}

/// Runs a statement built at run time, in which all names are schema-qualified. Reads its first row, if any.
pub fn changed<T>(
    sql: &str,
    arguments: &[DatumWithOid<'_>],
    read: impl FnOnce(&SpiHeapTupleData<'_>) -> Result<T, SpiError>,
) -> Result<Option<T>, SpiError> {
    server::refuse_during_recovery();
    connect_mut(|client| {
        let rows = client.update(sql, None, arguments)?;
        rows.into_iter().next().map(|row| read(&row)).transpose()
    })
}
