//! Error reports. No other module assigns SQLSTATEs to kinds of errors.

use crate::pg::encoding::legible;
use crate::pg::server;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};
use pgrx::spi::SpiError;
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, function_name, pg_sys};
use snowflake_ids_core::{Explain, Kind};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};

/// Returns the report for the session's user. Users without `pg_read_all_stats` do not see the addresses of other servers.
/// The log shows the whole text.
#[cold]
#[allow(clippy::needless_pass_by_value, reason = "callers pass this function to map_err")]
pub fn report(error: impl Explain) -> ErrorReport {
    let for_others = error.for_others().filter(|_| !server::may_see_all_activity());
    match for_others {
        Some((message, detail)) => with(&error, &message, Some(detail).filter(|detail| !detail.is_empty())),
        None => for_log(&error),
    }
}

/// Lets `?` and [`raise`] convert a type of errors into reports.
macro_rules! reported {
    ($error:ty) => {
        impl From<$error> for pgrx::pg_sys::panic::ErrorReport {
            #[cold]
            fn from(error: $error) -> Self {
                $crate::pg::report::report(error)
            }
        }
    };
}
pub(crate) use reported;

/// Returns the report with all details, for the log.
#[cold]
pub fn for_log(error: &impl Explain) -> ErrorReport {
    with(error, &error.to_string(), error.detail())
}

fn with(error: &impl Explain, message: &str, detail: Option<String>) -> ErrorReport {
    let mut report = new_report(sqlstate_of(error.kind()), legible(message));
    if let Some(detail) = detail {
        report = report.set_detail(legible(&detail));
    }
    if let Some(hint) = error.hint() {
        report = report.set_hint(legible(&hint));
    }
    report
}

/// Returns the SQLSTATE for a kind of error.
pub fn sqlstate_of(kind: Kind) -> PgSqlErrorCode {
    use PgSqlErrorCode as Code;
    match kind {
        Kind::BadArgument => Code::ERRCODE_INVALID_PARAMETER_VALUE,
        Kind::Null => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
        Kind::OtherType => Code::ERRCODE_DATATYPE_MISMATCH,
        Kind::InvalidText => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
        Kind::OutOfRange => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        Kind::LongText => Code::ERRCODE_STRING_DATA_RIGHT_TRUNCATION,
        Kind::Exhausted => Code::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        Kind::ClockBehind | Kind::NotReady => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        Kind::WaitedTooLong => Code::ERRCODE_INSUFFICIENT_RESOURCES,
        Kind::Locked => Code::ERRCODE_LOCK_NOT_AVAILABLE,
        Kind::Damaged => Code::ERRCODE_DATA_CORRUPTED,
        Kind::DiskFull => Code::ERRCODE_DISK_FULL,
        Kind::Io => Code::ERRCODE_IO_ERROR,
        Kind::Denied => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
        Kind::Undefined => Code::ERRCODE_UNDEFINED_OBJECT,
        Kind::UndefinedColumn => Code::ERRCODE_UNDEFINED_COLUMN,
        Kind::Duplicate => Code::ERRCODE_DUPLICATE_OBJECT,
        Kind::WrongObject => Code::ERRCODE_WRONG_OBJECT_TYPE,
        Kind::Unsupported => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
        Kind::LimitReached => Code::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        Kind::NoTable => Code::ERRCODE_UNDEFINED_TABLE,
        Kind::NoFunction => Code::ERRCODE_UNDEFINED_FUNCTION,
        Kind::InUse => Code::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
        Kind::Changed => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
        Kind::InTransaction => Code::ERRCODE_ACTIVE_SQL_TRANSACTION,
        Kind::GeneratedAlways => Code::ERRCODE_GENERATED_ALWAYS,
        Kind::Syntax => Code::ERRCODE_SYNTAX_ERROR,
        Kind::BadTrigger => Code::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        Kind::OtherEncoding => Code::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
        Kind::LacksCharacter => Code::ERRCODE_UNTRANSLATABLE_CHARACTER,
        Kind::NoMemory => Code::ERRCODE_OUT_OF_MEMORY,
        Kind::ReadOnly => Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
        Kind::Unreachable => Code::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
        Kind::Internal => Code::ERRCODE_INTERNAL_ERROR,
        Kind::Warning => Code::ERRCODE_WARNING,
        Kind::Notice => Code::ERRCODE_SUCCESSFUL_COMPLETION,
    }
}

/// Returns a report without detail and hint.
#[cold]
#[track_caller]
pub fn new_report(code: PgSqlErrorCode, message: impl Into<String>) -> ErrorReport {
    ErrorReport::new(code, message.into(), function_name!())
}

/// Returns the report of a caught error.
pub fn caught(error: CaughtError) -> ErrorReportWithLevel {
    match error {
        CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic { ereport: report, .. } => report,
    }
}

/// Returns the report for an error of SPI itself.
#[cold]
#[allow(clippy::needless_pass_by_value, reason = "callers pass this function to map_err")]
pub fn spi(error: SpiError) -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_INTERNAL_ERROR;
    new_report(code, format!("could not execute an internal query of snowflake_ids: {error}"))
}

/// Returns the five characters of an SQLSTATE, which the server packs into six bits each.
pub fn letters(code: i32) -> [u8; 5] {
    [0, 1, 2, 3, 4].map(|index| b'0' + (code >> (6 * index) & 0x3f).to_le_bytes()[0])
}

/// Returns an SQLSTATE as text.
pub fn sqlstate(code: i32) -> String {
    letters(code).map(char::from).iter().collect()
}

/// Returns the report of a caught error, and takes the error from the server's stack of errors, which has five entries.
pub fn take(error: CaughtError) -> ErrorReportWithLevel {
    let report = caught(error);
    // SAFETY: the report holds a copy of the error.
    unsafe { pg_sys::FlushErrorState() };
    report
}

/// Writes a line to the server's log.
#[cold]
#[track_caller]
pub fn log(message: impl Into<String>) {
    let code = PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION;
    new_report(code, message).report(PgLogLevel::LOG);
}

/// Sends a NOTICE or a WARNING to the session's user.
pub fn tell(notice: impl Explain) {
    let level = if notice.kind() == Kind::Warning { PgLogLevel::WARNING } else { PgLogLevel::NOTICE };
    report(notice).report(level);
}

/// Runs `work`. Gives an error another message, DETAIL and HINT. The SQLSTATE stays. A cancellation stays as it is.
pub fn with_texts<T>(
    work: impl FnOnce() -> Result<T, ErrorReport>,
    texts: impl Fn(&ErrorReportWithLevel) -> [String; 3] + UnwindSafe + RefUnwindSafe,
) -> T {
    PgTryBuilder::new(AssertUnwindSafe(|| work().unwrap_or_else(|error| raise(error))))
        .catch_when(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, |error| error.rethrow())
        .catch_others(|error| {
            let former = take(error);
            let [message, detail, hint] = texts(&former);
            raise(new_report(former.sql_error_code(), message).set_detail(detail).set_hint(hint))
        })
        .execute()
}

/// Throws an error in code that cannot return a `Result`, such as iterators and hooks.
#[cold]
pub fn raise(report: impl Into<ErrorReport>) -> ! {
    report.into().report(PgLogLevel::ERROR);
    unreachable!("an error report does not return")
}
