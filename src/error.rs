//! Errors as Postgres reports them: the core's kinds get their SQLSTATEs here, and nowhere else.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::{Explain, Kind, Refusal};

/// Why a session got no id.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// The server can't generate ids now; with the name of the function that was called.
    Unready(Unready, &'static str),
    /// The generator refused.
    Refused(Refusal),
}

impl From<Failure> for ErrorReport {
    #[cold]
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unready(unready, function) => unready.report(function),
            Failure::Refused(refusal) => explained(&refusal),
        }
    }
}

/// What keeps this server from generating ids, whatever the call.
#[derive(Clone, Copy, Debug)]
pub enum Unready {
    /// The library was not loaded at server start; with what is asked for.
    NotPreloaded(Need),
    /// A standby, or a server still replaying its log.
    InRecovery,
    /// `snowflake_ids.worker_id` is not set.
    NoWorkerId,
}

/// What a function needs of the server.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// Its generator, which needs a worker id.
    Generator,
    /// Its segments.
    Segments,
}

impl Unready {
    /// The report for a function of this name.
    #[cold]
    pub fn report(self, function: &str) -> ErrorReport {
        use PgSqlErrorCode as Code;
        let (code, message, detail, hint) = match self {
            Self::NotPreloaded(need) => (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake_ids must be loaded via shared_preload_libraries".to_owned(),
                format!("{function}() needs shared memory, which is set up at server start."),
                match need {
                    Need::Generator => {
                        "Add snowflake_ids to shared_preload_libraries, set snowflake_ids.worker_id, and \
                         restart the server."
                    }
                    Need::Segments => "Add snowflake_ids to shared_preload_libraries and restart the server.",
                },
            ),
            Self::InRecovery => (
                Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {function}() during recovery"),
                "Ids are generated on the primary only; they can be decoded here.".to_owned(),
                "Connect to the primary.",
            ),
            Self::NoWorkerId => (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake_ids.worker_id is not set".to_owned(),
                "Every server that generates ids needs a worker id of its own; there is no default, since \
                 two servers with the same one would generate the same ids."
                    .to_owned(),
                "Set snowflake_ids.worker_id to a number that no other server has, for example with ALTER \
                 SYSTEM SET snowflake_ids.worker_id = 1, and restart the server.",
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
        Kind::ClockBehind => PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        Kind::WaitedTooLong => PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
    };
    let mut report = ErrorReport::new(code, error.to_string(), function_name!());
    if let Some(detail) = error.detail() {
        report = report.set_detail(detail);
    }
    if let Some(hint) = error.hint() {
        report = report.set_hint(hint);
    }
    report
}

/// An argument that can't be right.
#[cold]
pub fn bad_argument(message: impl Into<String>, detail: impl Into<String>) -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
    ErrorReport::new(code, message.into(), function_name!()).set_detail(detail)
}

/// An error of SPI's that is no SQL error.
#[cold]
pub fn spi(error: &SpiError) -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_INTERNAL_ERROR;
    ErrorReport::new(code, format!("snowflake_ids could not run its SQL: {error}"), function_name!())
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
