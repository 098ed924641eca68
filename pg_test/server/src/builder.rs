//! The settings and the environment that a server is started with.

use crate::clock;
use crate::folder::Folder;
use crate::initdb;
use crate::installation::Installation;
use crate::owner::Owner;
use crate::preload;
use crate::programs::Programs;
use crate::server::Server;
use anyhow::Result;
use postgres::Client;
use std::collections::BTreeMap;
use std::path::Path;

/// A library that the server preloads.
#[derive(Clone, Copy, Debug)]
enum Library {
    Clock,
    Syncs,
    Statx,
}

/// The settings and the environment of a server to be started.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    settings: BTreeMap<String, String>,
    library: Option<Library>,
    checksums: bool,
    tells: bool,
    environment: Vec<(String, String)>,
    installation: Option<Installation>,
}

impl Default for Builder {
    fn default() -> Self {
        let settings = [
            ("shared_preload_libraries", "snowflake_ids"),
            ("snowflake_ids.worker_id", "1"),
            // The default since Postgres 14.
            ("password_encryption", "scram-sha-256"),
            // Because of this limit, a call that never ends fails the test instead of blocking it.
            ("statement_timeout", "2min"),
            // Refills are late on a busy machine. Tests of calls that find no ids set a shorter limit.
            ("snowflake_ids.segment_wait_timeout", "1min"),
            ("snowflake_ids.registry_down_timeout", "1min"),
        ];
        let settings = settings.map(|(name, value)| (name.into(), value.into())).into();
        Self {
            settings,
            library: None,
            checksums: false,
            tells: true,
            environment: Vec::new(),
            installation: None,
        }
    }
}

impl Builder {
    /// Sets a line of `postgresql.conf`. A later value for the same name replaces the earlier value.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// Leaves a setting at its default.
    pub fn without(mut self, name: &str) -> Self {
        self.settings.remove(name);
        self
    }

    /// Does not preload the extension.
    pub fn without_preload(self) -> Self {
        self.without("shared_preload_libraries")
    }

    /// Makes the server log hint bits and keep WAL, because `pg_rewind` needs both to make a standby of a former primary.
    pub fn rewindable(self) -> Self {
        self.set("wal_log_hints", "on").set("wal_keep_size", "256MB")
    }

    /// Gives the server a clock that [`Server::set_clock`] steps.
    pub fn false_clock(mut self) -> Self {
        self.library = Some(Library::Clock);
        self
    }

    /// Records the syncs of files for [`Server::syncs`]. The server then has no false clock.
    pub fn records_syncs(mut self) -> Self {
        self.library = Some(Library::Syncs);
        self
    }

    /// Hides creation times of files from the server.
    pub fn without_creation_times(mut self) -> Self {
        self.library = Some(Library::Statx);
        self
    }

    /// Sets a variable of the server's environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Enables data checksums.
    pub fn checksums(mut self) -> Self {
        self.checksums = true;
        self
    }

    /// Runs the server from a test's own Postgres.
    pub fn installation(mut self, installation: &Installation) -> Self {
        self.installation = Some(installation.clone());
        self
    }

    /// Keeps the server from printing the end of its log when the server is dropped.
    pub fn quiet(mut self) -> Self {
        self.tells = false;
        self
    }

    /// Creates the cluster and starts it.
    ///
    /// # Errors
    /// A program is missing, or the server does not start; the error contains its log.
    pub fn start(self) -> Result<Server> {
        let mut server = self.create()?;
        server.start_again()?;
        Ok(server)
    }

    /// Creates the cluster, starts it, and opens a session in the database `postgres`. The extension is created there.
    ///
    /// # Errors
    /// A program is missing, the server does not start, or the extension cannot be created.
    pub fn with_session(self) -> Result<(Server, Client)> {
        let server = self.start()?;
        let client = server.session()?;
        Ok((server, client))
    }

    /// Creates the cluster and leaves the server stopped.
    ///
    /// # Errors
    /// A program is missing, or fails.
    pub fn create(self) -> Result<Server> {
        let owner = Owner::of_servers()?;
        let programs = match &self.installation {
            Some(installation) => installation.programs()?,
            None => Programs::find(owner)?,
        };
        let folder = Folder::new(programs, owner)?;
        initdb::create(&folder, self.checksums)?;
        let mut environment = match self.library {
            Some(Library::Clock) => clock::environment(&folder)?,
            Some(Library::Syncs) => vec![preload::variable(&folder, "syncs.c", &folder.syncs())?],
            Some(Library::Statx) => vec![preload::variable(&folder, "statx.c", Path::new(""))?],
            None => Vec::new(),
        };
        environment.extend(self.environment);
        let mut server = Server::new(folder, environment)?;
        server.tells = self.tells;
        for (name, value) in &self.settings {
            server.set(name, value)?;
        }
        Ok(server)
    }
}

impl Server {
    /// A server with little memory that syncs nothing, because most tests concern neither size nor durability.
    pub fn builder() -> Builder {
        Self::full_size().set("shared_buffers", "32MB").set("fsync", "off").set("max_wal_size", "256MB")
    }

    /// A server with Postgres's defaults for memory and durability.
    pub fn full_size() -> Builder {
        Builder::default()
    }
}
