//! The fields of the state, and their text.

use super::data_directory::{Birth, DataDirectory};
use super::error::StateError;
use super::file;
use super::marks::{Mark, Marks};
use super::others::Others;
use crate::clock::UnixMicros;
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::registry::lease::{Lease, Policy};
use crate::server::anchor::Reading;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The state of one server. Serialises as the content of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The system identifier of the cluster that wrote it.
    pub system_identifier: u64,
    /// The timeline that the cluster was on.
    pub timeline: u32,
    /// The data directory and the file that it was written to.
    pub home: DataDirectory,
    /// Where it was copied from, if it was.
    pub copy_of: Option<DataDirectory>,
    /// The server's own layout, as text.
    pub layout: String,
    /// What it is to be from the next restart on, if an operator has said so and nothing stands in the way.
    #[serde(default)]
    pub next_layout: Option<String>,
    /// The clocks when it was written, as far as they were believed: the anchor.
    pub clock: Reading,
    /// What the wall clock showed then.
    pub seen: UnixMicros,
    /// The node that issues, or did last.
    pub node: Option<Node>,
    /// How far nodes may have issued in the server's own layout.
    #[serde(flatten)]
    pub own: Marks,
    /// How far they may have in others.
    #[serde(flatten)]
    pub others: Others,
    /// The worker id that was leased.
    pub lease: Option<Lease>,
    /// One that was given up as another registry took the place of its own, which is shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<Lease>,
    /// The token that is about to be written to the registry, and may be there already.
    pub claim: Option<i64>,
    /// The database by way of which worker ids are leased, by its oid: it draws from a registry, or is one.
    pub registry: Option<u32>,
    /// True if all databases were looked into, and none does: the server chooses its worker id itself.
    #[serde(default)]
    pub alone: bool,
    /// True if the extension was seen in a database before a worker id was chosen.
    #[serde(default)]
    pub is_installed: bool,
    /// The worker id that was chosen first; None where that is not known, or there was none.
    #[serde(default)]
    pub first: Option<First>,
    /// The database by way of which they may be leased, or not any more, if a transaction is committed.
    #[serde(default)]
    pub moving_to: Option<u32>,
    /// The registry, by its identity, that that database is to draw from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving_with: Option<String>,
    /// The registry, by its identity, from which this server and others have worker ids: a shared one, or its own where that
    /// has leased some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases_with: Option<String>,
}

/// The worker id that a server chose first, from which the shares of timelines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// The worker id.
    pub worker: u32,
    /// The timeline of the cluster then.
    pub timeline: u32,
}

/// A row that tells of a first worker id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The datacenter that it is of.
    pub datacenter: u32,
    /// The worker id.
    pub first: First,
    /// The identity of the data directory of the server that chose it.
    pub home: String,
    /// Its cluster.
    pub system_identifier: u64,
}

/// The node that a server is to issue as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A number that an operator chose.
    Fixed {
        /// 0 to the layout's largest.
        datacenter: u32,
        /// 0 to the layout's largest.
        worker: u32,
    },
    /// A worker id leased from a registry, or chosen by the server where there is none.
    Leased {
        /// 0 to the layout's largest.
        datacenter: u32,
    },
}

/// What the process that opens a state knows here and now.
#[derive(Clone, Debug)]
pub struct Here {
    /// The system identifier in `pg_control`.
    pub system_identifier: u64,
    /// The timeline of the cluster, from 1; it grows with each promotion.
    pub timeline: u32,
    /// The data directory, and the state file if one was read.
    pub home: DataDirectory,
    /// `snowflake_ids.layout`.
    pub layout: Layout,
    /// What `snowflake_ids.worker_id` asks for.
    pub identity: Identity,
    /// The clocks at the moment of opening.
    pub clock: Reading,
    /// The time of the last commit or checkpoint that was replayed, as far as is known.
    pub replayed: Option<UnixMicros>,
    /// How far ids may run ahead of the clock.
    pub max_drift: Duration,
    /// The largest step forward of the clock to be followed.
    pub max_clock_jump: Duration,
    /// A random number, by which a worker id is known that is taken now.
    pub token: i64,
    /// Which worker id to take.
    pub policy: Policy,
    /// True if the server has just started.
    pub starts: bool,
}

impl Here {
    /// The same where the state was read from this file.
    #[must_use]
    pub fn with_file(mut self, file: Birth) -> Self {
        self.home.file = Some(file);
        self
    }
}

impl State {
    /// The content of the file, in the present form.
    ///
    /// # Errors
    /// None that could happen: a state is plain data.
    pub fn to_text(&self) -> serde_json::Result<String> {
        file::to_text(self)
    }

    /// Returns what a file holds, whether this release wrote it or an older one.
    pub fn from_text(text: &[u8]) -> Result<Self, StateError> {
        file::from_text(text)
    }

    /// The same in the file of this birth, to which it is to be written.
    #[must_use]
    pub fn in_file(&self, birth: Birth) -> Self {
        let mut state = self.clone();
        state.home.file = Some(birth);
        state
    }

    /// Returns whether this very server wrote it last, and neither copied nor promoted it since.
    pub fn is_of(&self, here: &Here) -> bool {
        self.home.is(&here.home)
            && (self.system_identifier, self.timeline) == (here.system_identifier, here.timeline)
    }

    /// Returns whether this cluster wrote it, or one that it is a copy of.
    pub fn is_of_cluster(&self, here: &Here) -> bool {
        self.system_identifier == here.system_identifier
    }

    /// Returns whether it is the server's own layout.
    pub(super) fn is_own(&self, layout: &Layout) -> bool {
        self.layout.parse().is_ok_and(|own: Layout| own == *layout)
    }

    pub(super) fn all_marks(&self) -> impl Iterator<Item = &Mark> {
        self.own.marks.iter().chain(self.others.marks())
    }

    pub(super) fn all_marks_mut(&mut self) -> impl Iterator<Item = &mut Mark> {
        self.own.marks.iter_mut().chain(self.others.marks_mut())
    }

    pub(super) fn knows(&self, datacenter: u32, worker: u32) -> bool {
        let same = |node: Node| node.is_of(datacenter, worker);
        self.node.is_some_and(same) || self.all_marks().any(|mark| same(mark.node))
    }
}
