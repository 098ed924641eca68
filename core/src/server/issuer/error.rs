//! Errors of a server that cannot issue ids.

use crate::clock::UnixMicros;
use crate::error::Explain;
use crate::ids::id::IdError;
use crate::ids::layout::{Field, Layout, PRESETS};
use crate::server::state::{FILE, StateError};
use std::io;

/// Reason why this server cannot issue ids.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Debug, thiserror::Error, Explain)]
pub enum IssuerError {
    #[error(transparent)]
    Untrusted(#[from] StateError),
    #[error("could not read the state file of snowflake_ids")]
    #[explain(kind_with = Kind::of_io(_0), detail = "\"{FILE}\" in the data directory: {0}.")]
    #[explain(
        hint = "Make the file readable for the server's operating system account; ids are then issued again."
    )]
    Unreadable(#[source] io::Error),
    #[error("{UNWRITABLE}")]
    #[explain(kind_with = Kind::of_io(_0), detail = "\"{FILE}\" in the data directory: {0}.")]
    #[explain(hint = "{FREE_SPACE}")]
    Unwritable(#[source] io::Error),
    #[error("this server has no worker id yet")]
    #[explain(NotReady, detail = "A worker id must first be leased from the registry.")]
    #[explain(
        hint = "Try again, or set snowflake_ids.worker_id to a number that no other server has and restart the server."
    )]
    NoWorkerId,
    #[error("the lease of worker id {worker_id} has ended")]
    #[explain(
        NotReady,
        detail = "The worker id was leased until {expiry}, and the registry has not renewed the lease.",
        hint = "{SEE_LOG}"
    )]
    LeaseEnded { worker_id: u32, expiry: UnixMicros },
    #[error(transparent)]
    Misfit(IdError),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("no slot is free for another layout{}", if *.free > 0 { " of this database" } else { "" })]
    #[explain(LimitReached, detail_with = if *free == 0 {
        format!("snowflake_ids.max_generators is {slots}, and as many layouts besides the server's own were used within the last minute.")
    } else {
        format!(
            "snowflake_ids.max_generators is {slots}. This database has {held} slots, other databases have {}. A database may \
             take another slot if it has fewer slots than are free, or at least two fewer than another database.",
            slots.saturating_sub(held + free)
        )
    })]
    #[explain(hint = "Raise snowflake_ids.max_generators and restart the server, or try again in a minute.")]
    NoSlot { slots: usize, held: usize, free: usize },
}

/// The error for a node whose datacenter id or worker id does not fit a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("layout \"{layout}\" has no room for {field} id {value}")]
#[explain(kind_with = if self.leased { Kind::NotReady } else { Kind::BadArgument })]
#[explain(detail = "Its largest {field} id is {}.", layout.max(*field), hint_with = if self.leased {
    format!(
        "No worker id that fits the layout has been leased yet. Try again, or use a layout with a wider {field}{}.",
        self.presets()
    )
} else {
    format!("Use a layout with a wider {field}{}.", self.presets())
})]
pub struct NoRoom {
    /// The layout.
    pub layout: Layout,
    /// The field that does not fit: the datacenter or the worker.
    pub field: Field,
    /// The field's value on this server.
    pub value: u32,
    /// True if the server chooses or leases the value.
    pub leased: bool,
}

impl NoRoom {
    /// Returns the presets with room for the value, for the end of a sentence.
    fn presets(&self) -> String {
        let fits = |text: &str| {
            text.parse::<Layout>().is_ok_and(|layout| u64::from(self.value) <= layout.max(self.field))
        };
        let fitting: Vec<&str> =
            PRESETS.iter().filter(|(_, text)| fits(text)).map(|(name, _)| *name).collect();
        if fitting.is_empty() {
            return String::new();
        }
        format!("; these presets have room: {}", fitting.join(", "))
    }
}

/// A reason why no ids of a layout can be issued, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoIds {
    /// The reason, in a few words.
    pub reason: String,
    /// The remedy, in whole sentences: the HINT of a call that fails.
    pub remedy: String,
}

impl NoIds {
    pub(super) fn new(reason: &str, remedy: &str) -> Self {
        Self { reason: reason.to_owned(), remedy: remedy.to_owned() }
    }
}

impl<E: Explain> From<E> for NoIds {
    fn from(error: E) -> Self {
        Self { reason: error.to_string(), remedy: error.hint().unwrap_or_default() }
    }
}

pub(super) const FREE_SPACE: &str = "Free disk space, or make the directory writable for the server's operating system account; ids \
                                     are then issued again.";

pub(super) const SEE_LOG: &str = "See the server's log for the reason. To bridge longer outages of the registry, raise \
                                  snowflake_ids.lease_duration.";

/// The error message if the state file cannot be written.
pub const UNWRITABLE: &str = "could not write the state file of snowflake_ids";
