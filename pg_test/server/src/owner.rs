//! The account that runs a server. Postgres refuses to run as root, so root uses the account `postgres`.

use anyhow::{Context, Result};
use nix::unistd::{Gid, Uid, User};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The account that root runs servers as.
const ACCOUNT: &str = "postgres";

/// The owner of a server's files and processes.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// None: the user that runs the tests.
    other: Option<(Uid, Gid)>,
}

impl Owner {
    /// The account `postgres` for root, the present user otherwise.
    ///
    /// # Errors
    /// The caller is root, and the machine has no account `postgres`.
    pub fn of_servers() -> Result<Self> {
        if !Uid::effective().is_root() {
            return Ok(Self { other: None });
        }
        let user = User::from_name(ACCOUNT)?.with_context(|| {
            format!("root cannot run a server itself and there is no account \"{ACCOUNT}\": install Postgres")
        })?;
        Ok(Self { other: Some((user.uid, user.gid)) })
    }

    /// The owner's user and group, if the tests run as root.
    pub(crate) fn ids(self) -> Option<(Uid, Gid)> {
        self.other
    }

    /// Makes a command run as the owner.
    pub fn run(self, command: &mut Command) {
        if let Some((uid, gid)) = self.other {
            command.uid(uid.as_raw()).gid(gid.as_raw());
        }
    }

    /// Gives a file or folder to the owner.
    pub fn give(self, path: &Path) -> Result<()> {
        match self.other {
            Some((uid, gid)) => chown(path, Some(uid.as_raw()), Some(gid.as_raw()))
                .with_context(|| format!("cannot give {} to {ACCOUNT}", path.display())),
            None => Ok(()),
        }
    }
}
