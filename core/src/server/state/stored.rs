//! The fields of the state, and the identity of a data directory, which tells it from its copies.

use super::high_water_marks::{NodeHighWaterMark, NodeHighWaterMarks, Others};
use crate::clock::UnixMicros;
use crate::error::excerpt;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::registry::lease::{Lease, Policy};
use crate::server::clock_reference::Reading;
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
    /// The directory that it was copied from, if it was.
    pub copy_of: Option<DataDirectory>,
    /// The server's own layout.
    pub layout: Layout,
    /// The layout from the next restart on, if an operator has said so and nothing stands in the way.
    #[serde(default)]
    pub next_layout: Option<Layout>,
    /// The clocks when it was written, as far as they were believed: the clock reference.
    pub clock: Reading,
    /// The wall clock then.
    pub seen: UnixMicros,
    /// The node that issues, or did last.
    pub node: Option<Node>,
    /// The marks of nodes in the server's own layout.
    #[serde(flatten)]
    pub own: NodeHighWaterMarks,
    /// The marks in other layouts.
    #[serde(flatten)]
    pub others: Others,
    /// The worker id that was leased.
    pub lease: Option<Lease>,
    /// One that was given up as another registry took the place of its own, which is shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<Lease>,
    /// The token that is about to be written to the registry, and may be there already.
    #[serde(rename = "claim")]
    pub pending_token: Option<i64>,
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

/// A server's home: the identity of its data directory, and of the state file in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDirectory {
    /// A text that a copy of the directory does not share, and that a move keeps.
    pub identity: String,
    /// The same of the state file: in a state, of the file that it was written to; here and now, of the one that it was
    /// read from. They differ where an operator put a copy of the file there. None where that is not known.
    #[serde(default)]
    pub file: Option<FileIdentity>,
    /// The machine, for people.
    pub host: String,
    /// The directory, for people.
    pub directory: String,
}

/// The identity of a file: its copies have another, and it is kept by a move within the file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Its number in the file system; other files may have had it before.
    pub inode: u64,
    /// Time at which it was made; None where the file system does not keep that.
    pub at: Option<String>,
}

impl FileIdentity {
    /// Returns whether both may be of one file. A part that one of them does not tell is not compared.
    fn is_of(&self, other: &Self) -> bool {
        self.inode == other.inode && (self.at.is_none() || other.at.is_none() || self.at == other.at)
    }
}

impl DataDirectory {
    /// Returns whether it is this one, and not that of a copy.
    pub(super) fn is(&self, other: &Self) -> bool {
        if !self.is_in(other) {
            return !holds(Guard::CopyKnown);
        }
        match (&self.file, &other.file) {
            (Some(one), Some(other)) if holds(Guard::FileKnown) => one.is_of(other),
            _ => true,
        }
    }

    pub(super) fn is_in(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns what tells it from other copies of the same home, those included that were put into one directory one
    /// after the other.
    pub fn told_apart(&self) -> String {
        match &self.file {
            Some(FileIdentity { inode, at }) => {
                format!("{} {inode} {}", self.identity, at.as_deref().unwrap_or_default())
            }
            None => self.identity.clone(),
        }
    }

    pub(super) fn shown(&self) -> String {
        format!("\"{}\" on host \"{}\"", excerpt(&self.directory), excerpt(&self.host))
    }
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

/// The circumstances in which a process opens a state.
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
    /// The identity that `snowflake_ids.worker_id` asks for.
    pub identity: Identity,
    /// The clocks at the moment of opening.
    pub clock: Reading,
    /// The time of the last commit or checkpoint that was replayed, as far as is known.
    pub replayed: Option<UnixMicros>,
    /// The largest drift ahead of the clock.
    pub max_drift: Duration,
    /// The largest step forward of the clock to be followed.
    pub max_clock_jump: Duration,
    /// A random number, by which a worker id is known that is taken now.
    pub token: i64,
    /// The choice among worker ids.
    pub policy: Policy,
    /// True if the server has just started.
    pub starts: bool,
}

impl Here {
    /// The same where the state was read from this file.
    #[must_use]
    pub fn with_file(mut self, file: FileIdentity) -> Self {
        self.home.file = Some(file);
        self
    }
}

impl State {
    /// The same in the file of this birth, to which it is to be written.
    #[must_use]
    pub fn in_file(mut self, file_identity: FileIdentity) -> Self {
        self.home.file = Some(file_identity);
        self
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

    /// Each layout with its marks, the server's own first.
    pub fn tables(&self) -> impl Iterator<Item = (&Layout, &NodeHighWaterMarks)> {
        let others = self.others.layouts.iter().map(|other| (&other.layout, &other.of));
        std::iter::once((&self.layout, &self.own)).chain(others)
    }

    pub(super) fn all_high_water_marks(&self) -> impl Iterator<Item = &NodeHighWaterMark> {
        self.tables().flat_map(|(_, of)| &of.high_water_marks)
    }

    pub(super) fn all_high_water_marks_mut(&mut self) -> impl Iterator<Item = &mut NodeHighWaterMark> {
        let others = self.others.layouts.iter_mut().flat_map(|other| &mut other.of.high_water_marks);
        self.own.high_water_marks.iter_mut().chain(others)
    }
}
