//! Why a session got no id.

use crate::issuer::IssuerError;
use crate::lease;
use crate::pg::report::{NotReady, explained};
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::Refusal;
use snowflake_ids_core::wire::NoLease;

/// Why a session got no id.
#[derive(Debug)]
pub enum Failure {
    /// The server can't generate ids now; with the name of the function that was called.
    NotReady(NotReady, &'static str),
    /// The generator refused; with a way out that it does not know of.
    Refused(Refusal, Option<String>),
    /// Nothing could be reserved.
    Hindered(IssuerError),
    /// No worker id could be leased.
    NoLease(NoLease),
}

impl From<IssuerError> for Failure {
    fn from(error: IssuerError) -> Self {
        Self::Hindered(error)
    }
}

impl From<NoLease> for Failure {
    fn from(none: NoLease) -> Self {
        Self::NoLease(none)
    }
}

impl From<Failure> for ErrorReport {
    #[cold]
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotReady(unready, function) => unready.report(function),
            Failure::Refused(refusal, None) => explained(&refusal),
            Failure::Refused(refusal, Some(hint)) => explained(&refusal).set_hint(hint),
            Failure::Hindered(error) => error.into(),
            Failure::NoLease(none) => lease::report(none),
        }
    }
}
