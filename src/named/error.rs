//! Why a named generator gave no id.

use crate::pg::report::report;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::named::NamedError;
use snowflake_ids_core::session::SessionError;
use snowflake_ids_core::{Explain, Kind, Layout};

/// Why a named generator gave no id.
#[derive(Debug, thiserror::Error)]
pub enum NoIdError {
    /// There is no such generator.
    #[error(transparent)]
    Named(#[from] NamedError),
    /// The server gives none.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// It has no counter of this layout.
    #[error("this server cannot give ids of layout \"{0}\"")]
    Elsewhere(Layout),
}

impl NoIdError {
    fn cause(&self) -> Option<&dyn Explain> {
        match self {
            Self::Named(error) => Some(error),
            Self::Session(error) => Some(error),
            Self::Elsewhere(_) => None,
        }
    }
}

impl Explain for NoIdError {
    fn kind(&self) -> Kind {
        self.cause().map_or(Kind::Unsupported, Explain::kind)
    }

    fn detail(&self) -> Option<String> {
        self.cause()?.detail()
    }

    fn hint(&self) -> Option<String> {
        self.cause()?.hint()
    }

    fn for_others(&self) -> Option<(String, String)> {
        self.cause()?.for_others()
    }
}

impl From<NoIdError> for ErrorReport {
    #[cold]
    fn from(error: NoIdError) -> Self {
        report(&error)
    }
}
