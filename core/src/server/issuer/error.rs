//! Errors of a server that cannot issue.

use crate::clock::UnixMicros;
use crate::error::{Explain, Kind};
use crate::ids::id::IdError;
use crate::ids::layout::{Field, Layout, PRESETS};
use crate::server::state::{FILE, State, StateError};
use std::io;

/// Reason why this server does not issue.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    #[error(transparent)]
    Untrusted(#[from] StateError),
    #[error("snowflake_ids could not read its state file")]
    Unreadable(#[source] io::Error),
    #[error("{UNWRITABLE}")]
    Unwritable(#[source] io::Error),
    #[error("this server has no worker id yet")]
    NoWorkerId,
    #[error("the lease of worker id {worker} has ended")]
    LeaseEnded { worker: u32, expiry: UnixMicros },
    #[error(transparent)]
    Misfit(IdError),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("no place is free for another layout{}", if *.free > 0 { " of this database" } else { "" })]
    NoPlace { places: usize, held: usize, free: usize },
}

/// A node has no room in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("layout \"{layout}\" has no room for {field} id {value}")]
pub struct NoRoom {
    /// The layout.
    pub layout: Layout,
    /// The datacenter, or the worker.
    pub field: Field,
    /// Its value on this server.
    pub value: u32,
    /// True if worker ids are leased.
    pub leased: bool,
}

impl NoRoom {
    /// Returns whether another worker id may fit.
    pub fn may_lease(&self) -> bool {
        self.leased && self.field == Field::Worker
    }

    fn presets(&self) -> String {
        let fits = |text: &str| {
            text.parse::<Layout>().is_ok_and(|layout| u64::from(self.value) <= layout.max(self.field))
        };
        let fitting: Vec<&str> =
            PRESETS.iter().filter(|(_, text)| fits(text)).map(|(name, _)| *name).collect();
        fitting.join(", ")
    }
}

/// The message where the state cannot be written.
pub const UNWRITABLE: &str = "snowflake_ids could not write its state file";

impl IssuerError {
    /// The lease of this state ends.
    pub(super) fn expired(state: &State) -> Self {
        match &state.lease {
            Some(lease) => Self::LeaseEnded { worker: lease.worker, expiry: lease.expiry },
            None => Self::NoWorkerId,
        }
    }
}

impl Explain for IssuerError {
    fn kind(&self) -> Kind {
        match self {
            Self::Untrusted(error) => error.kind(),
            Self::Unreadable(error) | Self::Unwritable(error) => Kind::of_io(error),
            Self::NoWorkerId
            | Self::LeaseEnded { .. }
            | Self::NoRoom(NoRoom { leased: true, field: Field::Worker, .. }) => Kind::NotReady,
            Self::Misfit(error) => error.kind(),
            Self::NoRoom(_) => Kind::BadArgument,
            Self::NoPlace { .. } => Kind::LimitReached,
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Untrusted(error) => error.detail(),
            Self::Unreadable(error) | Self::Unwritable(error) => {
                Some(format!("\"{FILE}\" in the data directory: {error}."))
            }
            Self::NoWorkerId => Some("It has to be leased from the registry.".into()),
            Self::LeaseEnded { expiry, .. } => {
                Some(format!("It was leased until {expiry}, and the registry has not renewed it."))
            }
            Self::Misfit(error) => error.detail(),
            Self::NoRoom(NoRoom { layout, field, .. }) => {
                Some(format!("Its largest {field} id is {}.", layout.max(*field)))
            }
            Self::NoPlace { places, free: 0, .. } => Some(format!(
                "snowflake_ids.max_generators is {places}; so many layouts beside the server's own have been used within the last minute."
            )),
            Self::NoPlace { places, held, free } => Some(format!(
                "snowflake_ids.max_generators is {places}. This database has {held} of these places and others have {}; a database takes no \
                 more than half of those that are free, unless another one has two more.",
                places.saturating_sub(held + free)
            )),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Untrusted(error) => return error.hint(),
            Self::Misfit(error) => return error.hint(),
            Self::NoRoom(no_room) => {
                let presets = no_room.presets();
                let presets = if presets.is_empty() {
                    String::new()
                } else {
                    format!("; of the presets these have room: {presets}")
                };
                return Some(if no_room.may_lease() {
                    format!(
                        "No worker id that fits could be leased yet: try again, or use a layout with a wider {}{presets}.",
                        no_room.field
                    )
                } else {
                    format!("Use a layout with a wider {}{presets}.", no_room.field)
                });
            }
            Self::NoPlace { .. } => {
                "Raise snowflake_ids.max_generators and restart the server, or try again in a minute."
            }
            Self::Unreadable(_) => "Let the server's account read the file; ids go on by themselves then.",
            Self::Unwritable(_) => {
                "Make room, or let the server's account write there; ids go on by themselves then."
            }
            Self::NoWorkerId => {
                "Try again, or set snowflake_ids.worker_id to a number that no other server has."
            }
            Self::LeaseEnded { .. } => {
                "The server's log says why the registry does not; snowflake_ids.lease_duration is how long it may \
                 be away."
            }
        };
        Some(hint.into())
    }
    fn for_others(&self) -> Option<(String, String)> {
        let Self::Untrusted(error) = self else { return None };
        error
            .names_another_home()
            .then(|| (self.to_string(), "Its state was written in another data directory.".into()))
    }
}
