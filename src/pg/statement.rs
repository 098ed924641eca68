//! SQL statements that a process plans once; or each time, where what is best depends on how large tables are by now.

use super::process::PerProcess;
use super::report;
use super::server;
use super::text::TextOut;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiClient, SpiError, SpiHeapTupleData, SpiTupleTable};
use std::cell::RefCell;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;

/// A statement, planned when it is first run and kept, unless it is one for many rows.
pub struct Statement {
    sql: &'static str,
    types: &'static [PgBuiltInOids],
    is_kept: bool,
    kept: PerProcess<RefCell<Option<OwnedPreparedStatement>>>,
}

impl Statement {
    /// A statement with the types of its arguments. All names in it have their schemas, or are of `pg_catalog`.
    pub const fn new(sql: &'static str, types: &'static [PgBuiltInOids]) -> Self {
        Self { sql, types, is_kept: true, kept: PerProcess::new(RefCell::new(None)) }
    }

    /// The same for many rows, planned each time: a plan that was best for an empty table looks at all of it for each row.
    pub const fn of_many(sql: &'static str, types: &'static [PgBuiltInOids]) -> Self {
        Self { sql, types, is_kept: false, kept: PerProcess::new(RefCell::new(None)) }
    }

    /// Runs it in the present transaction, and passes over its rows.
    pub fn run(&self, arguments: &[DatumWithOid<'_>]) -> Result<(), SpiError> {
        self.first(arguments, |_| Ok(())).map(drop)
    }

    /// Runs it and reads its first row; None where it gave none.
    pub fn first<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(&SpiHeapTupleData<'_>) -> Result<T, SpiError>,
    ) -> Result<Option<T>, SpiError> {
        self.with_rows(arguments, |rows| rows.into_iter().next().map(|row| read(&row)).transpose())
    }

    /// Runs it and reads all of its rows.
    pub fn all<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        mut read: impl FnMut(&SpiHeapTupleData<'_>) -> Result<T, SpiError>,
    ) -> Result<Vec<T>, SpiError> {
        self.with_rows(arguments, |rows| rows.into_iter().map(|row| read(&row)).collect())
    }

    fn with_rows<T>(
        &self,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(SpiTupleTable<'_>) -> Result<T, SpiError>,
    ) -> Result<T, SpiError> {
        server::refuse_during_recovery();
        connect_mut(|client| {
            let types = || self.types.iter().map(|of| PgOid::BuiltIn(*of)).collect::<Vec<_>>();
            // A trigger that the statement fires may come here again, while the plan is in use.
            let Some(mut kept) = self.kept.try_borrow_mut().ok().filter(|_| self.is_kept) else {
                let plan = client.prepare_mut(self.sql, &types())?;
                return read(client.update(&plan, None, arguments)?);
            };
            let plan = match &mut *kept {
                Some(plan) => plan,
                empty => empty.insert(client.prepare_mut(self.sql, &types())?.keep()),
            };
            read(client.update(&*plan, None, arguments)?)
        })
    }
}

/// Connects to SPI. An error of the SQL passes without its CONTEXT, which names our own functions, that no user calls.
fn connect_mut<T>(work: impl FnOnce(&mut SpiClient<'_>) -> Result<T, SpiError>) -> Result<T, SpiError> {
    PgTryBuilder::new(AssertUnwindSafe(|| Spi::connect_mut(work)))
        .catch_others(|error| {
            let report = report::caught(error);
            // SAFETY: the error is in the report, and is raised anew: each that the server keeps takes one of five places.
            unsafe { pg_sys::FlushErrorState() };
            CaughtError::ErrorReport(report).rethrow()
        })
        .execute()
}

/// Runs a statement, planned for this once, and gives the bigint in the first column of its first row; None where there is none.
pub fn number(sql: &CStr) -> Result<Option<i64>, SpiError> {
    server::refuse_during_recovery();
    Spi::connect_mut(|client| {
        let rows = client.update(sql, Some(1), &[])?;
        rows.into_iter().next().map_or(Ok(None), |row| row.get::<i64>(1))
    })
}

/// The same with a text, for a statement that only reads: works during recovery.
pub fn text(sql: &CStr) -> Result<Option<TextOut>, SpiError> {
    Spi::connect(|client| {
        let rows = client.select(sql, None, &[])?;
        rows.into_iter().next().map_or(Ok(None), |row| row.get::<TextOut>(1))
    })
}

/// Runs a statement whose text is made for it, with all names qualified, and reads its first row; None where it gave none.
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

/// The same, and passes over its rows.
pub fn run(sql: &str, arguments: &[DatumWithOid<'_>]) -> Result<(), SpiError> {
    changed(sql, arguments, |_| Ok(())).map(drop)
}
