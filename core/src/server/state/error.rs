//! Errors of a stored state.

use super::stored::DataDirectory;
use crate::error::Explain;
use crate::ids::layout::Layout;
use crate::server::form::UnknownForm;

/// The reason why a server must not issue ids from a state.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum StateError {
    #[error("the state file of snowflake_ids is missing")]
    #[explain(
        Damaged,
        detail = "The state file records the highest ids issued. Without it, ids could be issued again after the clock was set back.",
        hint = "{RESET}"
    )]
    Missing,
    #[error("the state file of snowflake_ids is damaged")]
    #[explain(Damaged, detail = "{reason}.", hint = "{RESET}")]
    Damaged { reason: String },
    #[error("the state file of snowflake_ids has an unknown format")]
    #[explain(NotReady, detail = "{0}", hint_with = _0.hint())]
    UnknownForm(UnknownForm),
    #[error("the state file of snowflake_ids belongs to another cluster")]
    #[explain(
        Damaged,
        detail = "The file was written by the cluster with system identifier {stored}; this cluster has {ours}.",
        hint = "{RESET}"
    )]
    Foreign { stored: u64, ours: u64 },
    #[error("the state file of snowflake_ids was written for another layout")]
    #[explain(
        NotReady,
        detail = "The file was written for layout \"{stored}\"; snowflake_ids.layout is \"{ours}\". Ids of two layouts can be equal.",
        hint = "Set snowflake_ids.layout back to '{stored}' and restart the server; then change it with SELECT \
                snowflake_ids.layout_change('{ours}'). If no id of the old layout is in use, SELECT \
                snowflake_ids.state_reset() instead."
    )]
    Layout { stored: Layout, ours: Layout },
    /// The data directory is a copy of a directory whose server issues, or issued, under the same worker id; or an
    /// administrator restored the state file from a copy. A restored state file does not record ids that were issued
    /// after the copy was made. `homes` are the data directory recorded in the state, and the current data directory.
    #[error("{}", if homes[0].is_in(&homes[1]) {
        "the state file of snowflake_ids was restored from an older copy"
    } else {
        "this data directory is a copy, and must not use the worker id of the original"
    })]
    #[explain(NotReady, detail_with = match homes.each_ref().map(DataDirectory::shown) {
        _ if homes[0].is_in(&homes[1]) => format!(
            "Ids of datacenter {datacenter}, worker {worker_id} may have been issued since that copy was made, and could be \
             issued again."
        ),
        [of, here] => format!(
            "Ids of datacenter {datacenter}, worker {worker_id} were issued in {of}; this data directory is {here}."
        ),
    })]
    // Only some users may see the path of another data directory.
    #[explain(for_others = (!homes[0].is_in(&homes[1])).then(|| {
        (self.to_string(), "The state file was written in another data directory.".to_owned())
    }))]
    #[explain(hint = "{}", if homes[0].is_in(&homes[1]) {
        "To continue above the current time, SELECT snowflake_ids.state_adopt(). If the server that the copy comes from \
         runs elsewhere, set snowflake_ids.worker_id to a number that no other server has, or to auto, and restart the \
         server."
    } else {
        "Set snowflake_ids.worker_id to a number that no other server has, or to auto, and restart the server. \
         If the other server is gone for good, SELECT snowflake_ids.state_adopt() to continue with its worker id."
    })]
    Copy { homes: Box<[DataDirectory; 2]>, datacenter: u32, worker_id: u32 },
}

const RESET: &str = "If the file cannot be restored, SELECT snowflake_ids.state_reset() creates a new file; ids then start above \
                     the current time.";
