//! Why there is no page.

use crate::error::{Explain, Kind};

/// The reader may not read one of the views: half a page would look like all of it.
#[expect(missing_docs, reason = "the message names them")]
#[derive(Clone, Debug, thiserror::Error)]
#[error("permission denied for the status page")]
pub struct ForbiddenError {
    pub view: String,
    pub role: String,
}

impl Explain for ForbiddenError {
    fn kind(&self) -> Kind {
        Kind::Denied
    }

    fn detail(&self) -> Option<String> {
        Some(format!("It shows the view {}, which role \"{}\" may not read.", self.view, self.role))
    }

    fn hint(&self) -> Option<String> {
        Some(format!("GRANT SELECT ON {} to the role, or ask as another one.", self.view))
    }
}
