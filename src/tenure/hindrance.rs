//! What keeps this server from issuing.

use crate::error::{explained, io};
use crate::pg::server;
use crate::store::state::{FILE, Unreadable};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::state::{Distrust, State};
use snowflake_ids_core::{IdError, UnixMicros};
use std::fmt;
use std::io::Error;

/// What keeps this server from issuing.
#[derive(Debug)]
pub enum Hindrance {
    /// The state can't be trusted.
    Distrusted(Distrust),
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
        /// Its horizon.
        horizon: UnixMicros,
    },
    /// The worker id does not fit the layout.
    Misfit(IdError),
}

/// The message where the state can't be written.
pub const UNWRITABLE: &str = "snowflake_ids could not write its state file";

impl Hindrance {
    /// The lease of this state ends.
    pub fn horizon_reached(state: &State) -> Self {
        match &state.lease {
            Some(lease) => Self::LeaseEnded { worker: lease.worker, horizon: lease.horizon },
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
            Self::Distrusted(distrust) => explained(&distrust),
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
            Self::LeaseEnded { horizon, .. } => report(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("It was leased until {horizon}, and the registry has not renewed it."),
                "The server's log says why the registry does not; snowflake_ids.lease_horizon is how long it may \
                 be away.",
            ),
        }
    }
}

impl From<Unreadable> for Hindrance {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Distrusted(distrust) => Self::Distrusted(distrust),
            Unreadable::Io(error) => Self::Unreadable(error),
        }
    }
}

impl From<Distrust> for Hindrance {
    fn from(distrust: Distrust) -> Self {
        Self::Distrusted(distrust)
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Distrusted(distrust) => distrust.fmt(f),
            Self::Unreadable(_) => f.write_str("snowflake_ids could not read its state file"),
            Self::Unwritable(_) => f.write_str(UNWRITABLE),
            Self::NoWorkerId => f.write_str("this server has no worker id yet"),
            Self::LeaseEnded { worker, .. } => write!(f, "the lease of worker id {worker} has ended"),
            Self::Misfit(error) => error.fmt(f),
        }
    }
}

impl From<Hindrance> for ErrorReport {
    /// For a session: not everybody is to know where other servers are.
    #[cold]
    fn from(hindrance: Hindrance) -> Self {
        let names = matches!(&hindrance, Hindrance::Distrusted(distrust) if distrust.names_another_home());
        let report = hindrance.report();
        if names && !server::may_see_all_activity() {
            return report.set_detail("Its state was written in another data directory.");
        }
        report
    }
}
