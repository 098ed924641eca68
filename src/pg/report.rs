//! Errors as Postgres reports them: the core's kinds get their SQLSTATEs here, and nowhere else.

use crate::pg::encoding::legible;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use pgrx::spi::SpiError;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::{Explain, Kind};

/// What keeps this server from generating ids, whatever the call.
#[derive(Clone, Copy, Debug)]
pub enum NotReady {
    /// The library was not loaded at server start.
    NotPreloaded,
    /// A standby, or a server still replaying its log.
    InRecovery,
}

impl NotReady {
    /// The report for a function of this name.
    #[cold]
    pub fn report(self, function: &str) -> ErrorReport {
        use PgSqlErrorCode as Code;
        let (code, message, detail, hint) = match self {
            Self::NotPreloaded => (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake_ids must be loaded via shared_preload_libraries".to_owned(),
                format!("{function}() needs shared memory, which is set up at server start."),
                "Add snowflake_ids to shared_preload_libraries and restart the server.",
            ),
            Self::InRecovery => (
                Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {function}() during recovery"),
                "Ids are generated on the primary only; they can be decoded here.".to_owned(),
                "Connect to the primary.",
            ),
        };
        ErrorReport::new(code, message, function_name!()).set_detail(detail).set_hint(hint)
    }
}

/// An error of the core as a report.
#[cold]
pub fn explained(error: &impl Explain) -> ErrorReport {
    let code = match error.kind() {
        Kind::BadArgument => PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        Kind::Exhausted => PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        Kind::ClockBehind | Kind::NotReady => PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        Kind::WaitedTooLong => PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
        Kind::Damaged => PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        Kind::DiskFull => PgSqlErrorCode::ERRCODE_DISK_FULL,
        Kind::Io => PgSqlErrorCode::ERRCODE_IO_ERROR,
    };
    let mut report = ErrorReport::new(code, legible(&error.to_string()), function_name!());
    if let Some(detail) = error.detail() {
        report = report.set_detail(legible(&detail));
    }
    if let Some(hint) = error.hint() {
        report = report.set_hint(legible(&hint));
    }
    report
}

/// An argument that can't be right.
#[cold]
pub fn bad_argument(message: impl Into<String>, detail: impl Into<String>) -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
    ErrorReport::new(code, message.into(), function_name!()).set_detail(detail)
}

/// What an error said that was caught.
pub fn caught(error: CaughtError) -> ErrorReportWithLevel {
    match error {
        CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic { ereport: report, .. } => report,
    }
}

/// An error of SPI's that is no SQL error.
#[cold]
pub fn spi(error: &SpiError) -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_INTERNAL_ERROR;
    ErrorReport::new(code, format!("snowflake_ids could not run its SQL: {error}"), function_name!())
}

/// A message as the sentence that a DETAIL is.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The five letters of an SQLSTATE, which the server packs six bits each.
pub fn sqlstate(code: i32) -> String {
    (0..5).map(|index| char::from(b'0' + (code >> (6 * index) & 0x3f).to_le_bytes()[0])).collect()
}

/// Reports an error where a `Result` can't be returned: in an iterator, or at server start.
#[cold]
pub fn raise(report: impl Into<ErrorReport>) -> ! {
    report.into().report(PgLogLevel::ERROR);
    unreachable!("an error report does not return")
}
