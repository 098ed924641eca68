//! Why a session got no id.

use crate::issuer;
use crate::lease;
use crate::pg::report::{NotReady, explained};
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::session::SessionError;

/// Why a session got no id.
#[derive(Debug)]
pub enum Failure {
    /// The server can't generate ids now; with the name of the function that was called.
    NotReady(NotReady, &'static str),
    /// It can, and there is none.
    Session(SessionError),
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<Failure> for ErrorReport {
    #[cold]
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotReady(unready, function) => unready.report(function),
            Failure::Session(SessionError::Refused(refusal, None)) => explained(&refusal),
            Failure::Session(SessionError::Refused(refusal, Some(hint))) => {
                explained(&refusal).set_hint(hint)
            }
            Failure::Session(SessionError::Issuer(error)) => issuer::report(&error),
            Failure::Session(SessionError::NoLease(none)) => lease::report(none),
        }
    }
}
