//! Why a session got no id.

use crate::error::{Unready, explained};
use crate::tenure::Hindrance;
use crate::worker::lease;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::Refusal;
use snowflake_ids_core::wire::NoLease;

/// Why a session got no id.
#[derive(Debug)]
pub enum Failure {
    /// The server can't generate ids now; with the name of the function that was called.
    Unready(Unready, &'static str),
    /// The generator refused; with a way out that it does not know of.
    Refused(Refusal, Option<String>),
    /// Nothing could be reserved.
    Hindered(Hindrance),
    /// No worker id could be leased.
    NoLease(NoLease),
}

impl From<Hindrance> for Failure {
    fn from(hindrance: Hindrance) -> Self {
        Self::Hindered(hindrance)
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
            Failure::Unready(unready, function) => unready.report(function),
            Failure::Refused(refusal, None) => explained(&refusal),
            Failure::Refused(refusal, Some(hint)) => explained(&refusal).set_hint(hint),
            Failure::Hindered(hindrance) => hindrance.into(),
            Failure::NoLease(none) => lease::report(none),
        }
    }
}
