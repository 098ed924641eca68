//! What keeps this server from issuing.

use crate::pg::report::{explained, io};
use crate::pg::server;
use crate::store::state::{FILE, Unreadable};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::state::{State, StateError};
use snowflake_ids_core::{IdError, UnixMicros};
use std::fmt;
use std::io::Error;

/// What keeps this server from issuing.
#[derive(Debug)]
pub enum IssuerError {
    /// The state can't be trusted.
    Untrusted(StateError),
    /// The state can't be read,
    Unreadable(Error),
    /// or can't be written.
    Unwritable(Error),
    /// There is no worker id yet: it has to be leased.
    NoWorkerId,
    /// The lease ends here.
    LeaseEnded {
        /// Its worker id.
        worker: u32,
        /// Its expiry.
        expiry: UnixMicros,
    },
    /// The worker id does not fit the layout.
    Misfit(IdError),
}

/// The message where the state can't be written.
pub const UNWRITABLE: &str = "snowflake_ids could not write its state file";

impl IssuerError {
    /// The lease of this state ends.
    pub fn expired(state: &State) -> Self {
        match &state.lease {
            Some(lease) => Self::LeaseEnded { worker: lease.worker, expiry: lease.expiry },
            None => Self::NoWorkerId,
        }
    }

    /// The report for the log.
    #[cold]
    pub fn report(self) -> ErrorReport {
        let message = self.to_string();
        let report = |code, detail: String, hint: &str| {
            ErrorReport::new(code, message.clone(), function_name!()).set_detail(detail).set_hint(hint)
        };
        match self {
            Self::Untrusted(error) => explained(&error),
            Self::Misfit(error) => explained(&error),
            Self::Unreadable(error) => report(
                io(&error),
                format!("\"{FILE}\" in the data directory: {error}."),
                "Let the server's account read the file; ids go on by themselves then.",
            ),
            Self::Unwritable(error) => report(
                io(&error),
                format!("\"{FILE}\" in the data directory: {error}."),
                "Make room, or let the server's account write there; ids go on by themselves then.",
            ),
            Self::NoWorkerId => report(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "It has to be leased from the registry.".into(),
                "Try again, or set snowflake_ids.worker_id to a number that no other server has.",
            ),
            Self::LeaseEnded { expiry, .. } => report(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("It was leased until {expiry}, and the registry has not renewed it."),
                "The server's log says why the registry does not; snowflake_ids.lease_duration is how long it may \
                 be away.",
            ),
        }
    }
}

impl From<Unreadable> for IssuerError {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Untrusted(error) => Self::Untrusted(error),
            Unreadable::Io(error) => Self::Unreadable(error),
        }
    }
}

impl From<StateError> for IssuerError {
    fn from(error: StateError) -> Self {
        Self::Untrusted(error)
    }
}

impl fmt::Display for IssuerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted(error) => error.fmt(f),
            Self::Unreadable(_) => f.write_str("snowflake_ids could not read its state file"),
            Self::Unwritable(_) => f.write_str(UNWRITABLE),
            Self::NoWorkerId => f.write_str("this server has no worker id yet"),
            Self::LeaseEnded { worker, .. } => write!(f, "the lease of worker id {worker} has ended"),
            Self::Misfit(error) => error.fmt(f),
        }
    }
}

impl From<IssuerError> for ErrorReport {
    /// For a session: not everybody is to know where other servers are.
    #[cold]
    fn from(error: IssuerError) -> Self {
        let names = matches!(&error, IssuerError::Untrusted(error) if error.names_another_home());
        let report = error.report();
        if names && !server::may_see_all_activity() {
            return report.set_detail("Its state was written in another data directory.");
        }
        report
    }
}
