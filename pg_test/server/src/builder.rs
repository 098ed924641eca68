//! What a server is started with.

use crate::clock;
use crate::owner::Owner;
use crate::programs::{self, Programs};
use crate::server::{DataDirectory, Server};
use anyhow::Result;
use std::collections::BTreeMap;

/// The settings and the environment of a server to be started.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    settings: BTreeMap<String, String>,
    faketime: bool,
    checksums: bool,
    environment: Vec<(String, String)>,
}

impl Default for Builder {
    fn default() -> Self {
        let settings = [
            ("shared_preload_libraries", "snowflake_ids"),
            ("snowflake_ids.worker_id", "1"),
            // The default since 14.
            ("password_encryption", "scram-sha-256"),
            // A call that never ends fails its test instead of holding it up.
            ("statement_timeout", "2min"),
        ];
        let settings = settings.map(|(name, value)| (name.into(), value.into())).into();
        Self { settings, faketime: false, checksums: false, environment: Vec::new() }
    }
}

impl Builder {
    /// Sets a line of `postgresql.conf`; the last one counts.
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

    /// Little memory, nothing synced: for tests whose subject is neither size nor durability.
    pub fn small(self) -> Self {
        self.set("shared_buffers", "32MB").set("fsync", "off").set("max_wal_size", "256MB")
    }

    /// Keeps what `pg_rewind` needs to make a standby of a former primary.
    pub fn rewindable(self) -> Self {
        self.set("wal_log_hints", "on").set("wal_keep_size", "256MB")
    }

    /// Gives the server a clock that [`Server::set_clock`] steps.
    pub fn faketime(mut self) -> Self {
        self.faketime = true;
        self
    }

    /// Sets a variable of the server's environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Has checksums on the pages of its data.
    pub fn checksums(mut self) -> Self {
        self.checksums = true;
        self
    }

    /// Creates the cluster and starts it.
    ///
    /// # Errors
    /// A program is missing, or the server does not start; the error holds its log.
    pub fn start(self) -> Result<Server> {
        let owner = Owner::of_servers()?;
        let home = DataDirectory::new(Programs::find(owner)?, owner)?;
        let mut initdb = home.command("initdb");
        // Neither the server's speed nor its safety depends on a sync of the empty cluster.
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        if self.checksums {
            initdb.arg("--data-checksums");
        }
        programs::output(initdb.arg("--pgdata").arg(home.data()))?;
        let mut environment = if self.faketime { clock::environment(&home)? } else { Vec::new() };
        environment.extend(self.environment);
        let mut server = Server::new(home, environment)?;
        for (name, value) in &self.settings {
            server.set(name, value)?;
        }
        server.start_again()?;
        Ok(server)
    }
}
