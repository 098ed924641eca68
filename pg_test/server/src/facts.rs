//! The facts by which a server's machine is known.

use crate::owner::Owner;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program with its own host name, and with files in the place of others.
const RUN: &str = r#"set -e
echo "$1" >/proc/sys/kernel/hostname; shift
for file in /etc/machine-id /etc/hostname; do [ -z "$1" ] || mount --bind "$1" "$file"; shift; done
exec setpriv --clear-groups "$@""#;

/// The facts by which a server's machine is known.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The host name.
    pub host: String,
    /// The file in the place of `/etc/machine-id`.
    pub machine_id: Option<PathBuf>,
    /// The file in the place of `/etc/hostname`.
    pub hostname: Option<PathBuf>,
}

/// The command that runs `program` where these facts are seen.
pub(crate) fn command(program: &Command, owner: Owner, facts: &Facts) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--uts", "--mount", "sh", "-c", RUN, "sh", &facts.host]);
    for file in [&facts.machine_id, &facts.hostname] {
        command.arg(file.as_deref().unwrap_or(Path::new("")));
    }
    let ids = owner.ids().into_iter();
    command.args(ids.flat_map(|(uid, gid)| [format!("--reuid={uid}"), format!("--regid={gid}")]));
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    command
}
