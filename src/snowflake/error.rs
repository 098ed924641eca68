//! Why a session got no id.

use crate::pg::report::{NotReadyError, report};
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::session::SessionError;

/// Why a session got no id.
#[derive(Debug)]
pub enum SnowflakeError {
    /// The server can't generate ids now.
    NotReady(NotReadyError),
    /// It can, and there is none.
    Session(SessionError),
}

impl From<NotReadyError> for SnowflakeError {
    fn from(error: NotReadyError) -> Self {
        Self::NotReady(error)
    }
}

impl From<SessionError> for SnowflakeError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<SnowflakeError> for ErrorReport {
    #[cold]
    fn from(error: SnowflakeError) -> Self {
        match error {
            SnowflakeError::NotReady(error) => report(&error),
            SnowflakeError::Session(SessionError::Refused(refusal, None)) => report(&refusal),
            SnowflakeError::Session(SessionError::Refused(refusal, Some(hint))) => {
                report(&refusal).set_hint(hint)
            }
            SnowflakeError::Session(SessionError::Issuer(error)) => report(&error),
            SnowflakeError::Session(SessionError::NoLease(none)) => report(&none),
        }
    }
}
