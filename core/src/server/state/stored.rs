//! The fields of the state, and the identity of a data directory: whether a state file is this server's own, or that of a copy.

use super::high_water_marks::{NodeHighWaterMark, NodeHighWaterMarks, Others};
use super::machine::Machine;
use super::source::WorkerIdSource;
use crate::clock::UnixMicros;
use crate::error::excerpt;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::clock_reference::Reading;
use crate::server::lease::{Lease, Policy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The state of one server. Serialises as the content of the state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The system identifier of the cluster that wrote the state.
    pub system_identifier: u64,
    /// The timeline of the cluster when the state was written.
    pub timeline: u32,
    /// The data directory and the file to which the state was written.
    pub home: DataDirectory,
    /// The data directory from which this directory was copied; None if this directory is no copy.
    pub copy_of: Option<DataDirectory>,
    /// The last time that the directory was found to be a copy or put back; None if it never was, or only as an unused
    /// image.
    pub copied: Option<Copied>,
    /// True if ids of tags may have been reserved on this server. Then a copy of the directory is not an unused image.
    pub has_reserved: bool,
    /// The server's own layout.
    pub layout: Layout,
    /// The server's own layout after the next restart, if an administrator has allowed a change.
    pub next_layout: Option<Layout>,
    /// The clock reference (the furthest trusted reading of the clock) at the time of writing.
    pub clock: Reading,
    /// The wall clock's time at the time of writing.
    pub seen: UnixMicros,
    /// The node that issues ids, or that issued ids last.
    pub node: Option<Node>,
    /// The high-water marks of nodes in the server's own layout.
    pub own: NodeHighWaterMarks,
    /// An upper bound of the safe positions that readers may have received, in the server's own layout; 0 if there are
    /// no readers. Every term begins at or above this bound.
    pub told: Position,
    /// The high-water marks of nodes in other layouts.
    pub others: Others,
    /// The lease of the worker id.
    pub lease: Option<Lease>,
    /// A lease that was given up because another registry replaced the lease's registry. The server shows this lease to
    /// the new registry.
    pub former: Option<Lease>,
    /// The lease token that the registry may have recorded although the server has no answer: of a request for a lease or
    /// a renewal, or of a lease that was given up.
    pub pending_token: Option<i64>,
    /// The source of the server's worker ids.
    pub source: WorkerIdSource,
    /// True if a database had the extension before a worker id was chosen.
    pub is_installed: bool,
    /// The first worker id that the server chose; None if this worker id is unknown, or if the server has chosen no
    /// worker id.
    pub first: Option<First>,
}

/// The identity of a server's data directory, and of the state file in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDirectory {
    /// A text that differs between a directory and its copies, and stays the same when the directory is moved.
    pub identity: String,
    /// The identity of the state file; None if unknown. In a stored state, this is the identity of the file to which
    /// the state was written. In [`Here`], this is the identity of the file from which the state was read. The two
    /// files differ if an administrator restored a copy of the file.
    pub file: Option<FileIdentity>,
    /// The machine and container, if a copy of the directory may have the same `identity`; else None.
    pub machine: Option<Machine>,
    /// The machine's name, for messages. Also distinguishes copies if `machine` does.
    pub host: String,
    /// The directory's path, for messages.
    pub directory: String,
}

/// An event that may have set a server's tables back: its data directory was copied, or put back from a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// A number that differs between all such events. Each row of a tag records the last event before its last change.
    pub number: i64,
    /// The time at which the server found it.
    pub at: UnixMicros,
}

/// The identity of a file. A copy has another identity; a move within the file system keeps the identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The inode number. An earlier file may have had the same number.
    pub inode: u64,
    /// The creation time; None if the file system does not record creation times.
    pub at: Option<String>,
}

impl FileIdentity {
    /// Returns true if the two identities may be of the same file. Creation times are compared only if both are known.
    fn is_of(&self, other: &Self) -> bool {
        self.inode == other.inode && (self.at.is_none() || other.at.is_none() || self.at == other.at)
    }
}

impl DataDirectory {
    pub(super) fn is(&self, other: &Self) -> bool {
        if !self.is_in(other) {
            return !holds(Guard::CopyKnown);
        }
        self.has_file_of(other)
    }

    fn has_file_of(&self, other: &Self) -> bool {
        match (&self.file, &other.file) {
            (Some(one), Some(other)) if holds(Guard::FileKnown) => one.is_of(other),
            _ => true,
        }
    }

    pub(super) fn is_in(&self, other: &Self) -> bool {
        self.identity == other.identity && self.is_on(other)
    }

    /// Returns false if the two directories are on different machines, or only one is on a file system where the machine
    /// counts. Unknown facts are no evidence.
    fn is_on(&self, other: &Self) -> bool {
        let is_same = |one: &str, two: &str| one.is_empty() || two.is_empty() || one == two;
        let is_on = match (&self.machine, &other.machine) {
            (Some(one), Some(two)) => {
                is_same(&self.host, &other.host)
                    && is_same(&one.id, &two.id)
                    && is_same(&one.container, &two.container)
            }
            (one, two) => one.is_none() && two.is_none(),
        };
        is_on || !holds(Guard::MachineKnown)
    }

    /// Returns true if the state file is not the one that was last written in this directory.
    pub(super) fn is_put_back(&self, here: &Self) -> bool {
        self.identity == here.identity && !self.has_file_of(here)
    }

    /// Returns true if nothing but the machine distinguishes the two directories, so that they may be one.
    pub(super) fn may_be_moved(&self, here: &Self) -> bool {
        self.identity == here.identity && self.has_file_of(here)
    }

    /// Returns a text that differs between all copies of one data directory, even between copies that replaced each
    /// other at one path.
    pub fn told_apart(&self) -> String {
        let file = self.file.as_ref();
        let file = file.map(|FileIdentity { inode, at }| format!(" {inode} {}", at.as_deref().unwrap_or("")));
        let machine = self.machine.as_ref();
        let machine = machine.map(|Machine { id, container }| format!(" {} {id} {container}", self.host));
        self.identity.clone() + &file.unwrap_or_default() + &machine.unwrap_or_default()
    }

    pub(super) fn shown(&self) -> String {
        format!("\"{}\" on host \"{}\"", excerpt(&self.directory), excerpt(&self.host))
    }
}

/// The first worker id that a server chose. The shares of worker ids for later timelines are counted from the share
/// that contains this worker id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// The datacenter of the worker id.
    pub datacenter: u32,
    /// The worker id.
    pub worker_id: u32,
    /// The timeline of the cluster when the server chose the worker id.
    pub timeline: u32,
}

/// A table row that records the first worker id of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The worker id.
    pub first: First,
    /// The identity of the data directory of the server that chose the worker id.
    pub home: String,
    /// The system identifier of that server's cluster.
    pub system_identifier: u64,
}

/// The setting that determines the node under which a server issues ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A worker id that an administrator set.
    Fixed {
        /// The datacenter id: 0 to the layout's largest datacenter id.
        datacenter: u32,
        /// The worker id: 0 to the layout's largest worker id.
        worker_id: u32,
    },
    /// A worker id that a registry leases, or that the server chooses if it has no registry.
    Leased {
        /// The datacenter id: 0 to the layout's largest datacenter id. None if the datacenter is chosen or leased with
        /// the worker id.
        datacenter: Option<u32>,
    },
}

/// The identity, clocks and settings with which a process opens a state.
#[derive(Clone, Debug)]
pub struct Here {
    /// The system identifier in `pg_control`.
    pub system_identifier: u64,
    /// The timeline of the cluster. The first timeline is 1, and each promotion raises the timeline.
    pub timeline: u32,
    /// The data directory, and the state file if a state file was read.
    pub home: DataDirectory,
    /// The server's own layout: `snowflake_ids.layout`.
    pub layout: Layout,
    /// The identity according to the setting `snowflake_ids.worker_id`.
    pub identity: Identity,
    /// The reading of the clocks at the time of opening.
    pub clock: Reading,
    /// The time of the last commit that recovery replayed, or a later time that a previous primary replicated; None if
    /// unknown.
    pub replayed: Option<UnixMicros>,
    /// The largest allowed drift ahead of the clock.
    pub max_drift: Duration,
    /// The largest step forward of the clock that ids follow.
    pub max_clock_jump: Duration,
    /// A random number, which becomes the lease token if the server takes a worker id now.
    pub token: i64,
    /// The policy for choosing a worker id.
    pub policy: Policy,
    /// True if the server has just started.
    pub starts: bool,
}

impl Here {
    /// Sets the file from which the state was read.
    #[must_use]
    pub fn with_file(mut self, file: FileIdentity) -> Self {
        self.home.file = Some(file);
        self
    }
}

impl State {
    /// Sets the file to which the state is to be written.
    #[must_use]
    pub fn in_file(mut self, file_identity: FileIdentity) -> Self {
        self.home.file = Some(file_identity);
        self
    }

    /// Returns true if this server wrote the state, and was neither copied nor promoted since.
    pub fn is_of(&self, here: &Here) -> bool {
        self.home.is(&here.home)
            && (self.system_identifier, self.timeline) == (here.system_identifier, here.timeline)
    }

    /// Returns true if this cluster wrote the state, or a cluster with the same system identifier, of which this
    /// cluster is a copy.
    pub fn is_of_cluster(&self, here: &Here) -> bool {
        self.system_identifier == here.system_identifier
    }

    /// Returns each layout with its high-water marks, beginning with the server's own layout.
    pub fn tables(&self) -> impl Iterator<Item = (&Layout, &NodeHighWaterMarks)> {
        let others = self.others.layouts.iter().map(|other| (&other.layout, &other.of));
        std::iter::once((&self.layout, &self.own)).chain(others)
    }

    /// Returns all high-water marks with their layouts.
    pub(super) fn marks(&self) -> impl Iterator<Item = (&Layout, &NodeHighWaterMark)> {
        self.tables().flat_map(|(layout, of)| of.high_water_marks.iter().map(move |mark| (layout, mark)))
    }

    pub(super) fn marks_mut(&mut self) -> impl Iterator<Item = &mut NodeHighWaterMark> {
        let others = self.others.layouts.iter_mut().flat_map(|other| &mut other.of.high_water_marks);
        self.own.high_water_marks.iter_mut().chain(others)
    }
}
