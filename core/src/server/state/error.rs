//! Errors of a stored state.

use super::stored::DataDirectory;
use crate::error::{Explain, Kind};
use crate::ids::layout::Layout;
use crate::server::form::Newer;

/// Reason why a server must not go on from a state.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("the state file of snowflake_ids is missing")]
    Missing,
    #[error("the state file of snowflake_ids is damaged")]
    Damaged { reason: String },
    #[error("the state file of snowflake_ids was written by a newer version")]
    Newer(Newer),
    #[error("the state file of snowflake_ids belongs to another cluster")]
    Foreign { stored: u64, ours: u64 },
    #[error("the state file of snowflake_ids was written for another layout")]
    Layout { stored: Layout, ours: Layout },
    /// The data directory is a copy of one that issues, or did, as the same worker; or the state in it was put back from a
    /// copy, and says nothing of what was issued since. Its homes are that where the state was written, and the present one.
    #[error("{}", said_of_copy(homes))]
    Copy { homes: Box<[DataDirectory; 2]>, datacenter: u32, worker: u32 },
}

const RESET: &str = "If it can't be restored, SELECT snowflake_ids.state_reset() begins a new one, from which ids \
                     start above the present time.";

fn said_of_copy(homes: &[DataDirectory; 2]) -> &'static str {
    if homes[0].is_in(&homes[1]) {
        "the state file of snowflake_ids was put back from a copy, and does not say what was issued since"
    } else {
        "this data directory is a copy of another one, whose worker id must not be used twice"
    }
}

impl StateError {
    /// Returns whether it tells of another directory.
    pub fn names_another_home(&self) -> bool {
        matches!(self, Self::Copy { homes, .. } if !homes[0].is_in(&homes[1]))
    }
}

impl Explain for StateError {
    fn kind(&self) -> Kind {
        match self {
            Self::Missing | Self::Damaged { .. } | Self::Foreign { .. } => Kind::Damaged,
            Self::Newer(_) | Self::Layout { .. } | Self::Copy { .. } => Kind::NotReady,
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Missing => {
                "It says how far ids were issued; without it they could come again after a step back of the clock."
                    .into()
            }
            Self::Damaged { reason } => format!("{reason}."),
            Self::Newer(newer) => newer.to_string(),
            Self::Foreign { stored, ours } => {
                format!("It was written by the cluster with system identifier {stored}; this one has {ours}.")
            }
            Self::Layout { stored, ours } => {
                format!("It was written for layout \"{stored}\"; snowflake_ids.layout is \"{ours}\". Ids of two layouts can be equal.")
            }
            Self::Copy { homes, datacenter, worker } if homes[0].is_in(&homes[1]) => format!(
                "Ids of datacenter {datacenter}, worker {worker} may have been issued since that copy was made, and could come again."
            ),
            Self::Copy { homes, datacenter, worker } => {
                let [of, here] = (**homes).each_ref().map(DataDirectory::shown);
                format!("Ids of datacenter {datacenter}, worker {worker} were issued in {of}; this is {here}.")
            }
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing | Self::Damaged { .. } | Self::Foreign { .. } => RESET.into(),
            Self::Newer(newer) => newer.hint(),
            Self::Layout { stored, .. } => format!(
                "Set snowflake_ids.layout back to '{stored}' and restart the server; SELECT snowflake_ids.layout_change() then \
                 changes it where ids of the new layout are above those of the old one. If no id of that layout was kept, \
                 SELECT snowflake_ids.state_reset() begins anew."
            ),
            Self::Copy { homes, .. } if homes[0].is_in(&homes[1]) => {
                "SELECT snowflake_ids.state_adopt() goes on above the present time. If the server whose state it was runs \
                 elsewhere, set snowflake_ids.worker_id to a number that no other server has, or to auto, and restart the server."
                    .into()
            }
            Self::Copy { .. } => {
                "Set snowflake_ids.worker_id to a number that no other server has, or to auto, and restart the server. \
                 If the other one is gone for good, SELECT snowflake_ids.state_adopt() goes on in its place."
                    .into()
            }
        })
    }
}
