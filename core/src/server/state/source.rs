//! The source of a server's worker ids: the server itself, or a registry.

use serde::{Deserialize, Serialize};

/// The source of a server's worker ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerIdSource {
    /// The server's databases must be checked for registries.
    #[default]
    Unknown,
    /// No database of this server uses or is a registry, so the server chooses its worker id itself.
    Alone,
    /// Worker ids are leased through a database that uses or is a registry.
    Leased {
        /// The OID of the database.
        database: u32,
        /// The identity of the registry from which this server and other servers lease worker ids. This is a shared
        /// registry, or the server's own registry if the server's own registry has leased worker ids to other servers.
        shared: Option<String>,
    },
    /// A database joins or leaves a registry in a transaction that is open, or whose outcome is not recorded yet.
    Moving {
        /// The OID of the database.
        database: u32,
        /// The identity of the registry that the database joins; None if the database leaves its registry.
        to: Option<String>,
        /// The source until the transaction commits. Never `Moving`.
        from: Box<Self>,
    },
}

impl WorkerIdSource {
    /// Returns the source until the transaction that changes the source commits.
    pub fn settled(&self) -> &Self {
        if let Self::Moving { from, .. } = self { from } else { self }
    }

    /// Returns true if the server chooses its worker id itself.
    pub fn is_alone(&self) -> bool {
        *self.settled() == Self::Alone
    }

    /// Returns the OID of the database through which worker ids are leased.
    pub fn database(&self) -> Option<u32> {
        if let Self::Leased { database, .. } = self.settled() { Some(*database) } else { None }
    }

    /// Returns the identity of the registry that this server shares with other servers.
    pub fn shared(&self) -> Option<&str> {
        if let Self::Leased { shared, .. } = self.settled() { shared.as_deref() } else { None }
    }

    /// Returns the OID of the database that joins or leaves a registry.
    pub fn moving(&self) -> Option<u32> {
        if let Self::Moving { database, .. } = self { Some(*database) } else { None }
    }

    /// Returns the OID of another database than `database` that is joining or leaving a registry, unless that database
    /// joins the registry with the identity `identity`.
    pub(super) fn moving_elsewhere(&self, database: u32, identity: &str) -> Option<u32> {
        match self {
            Self::Moving { to, .. } if to.as_deref() == Some(identity) => None,
            _ => self.moving().filter(|moving| *moving != database),
        }
    }

    /// Records that a transaction of `database` changes the database's use of registries. `to` is the identity of the
    /// registry that the database joins, if known.
    pub fn move_by(&mut self, database: u32, to: Option<&str>) {
        let known = match self {
            Self::Moving { database: moving, to, .. } if *moving == database => to.take(),
            _ => None,
        };
        let (to, from) = (to.map(str::to_owned).or(known), Box::new(self.settled().clone()));
        *self = Self::Moving { database, to, from };
    }

    /// Replaces the source. A move that is under way stays recorded.
    pub(super) fn settle(&mut self, settled: Self) {
        if let Self::Moving { from, .. } = self {
            **from = settled;
        } else {
            *self = settled;
        }
    }

    /// Ends a move. The source stays as it was before the move.
    pub(super) fn end_move(&mut self) {
        *self = self.settled().clone();
    }
}
