//! Servers in containers of one image: each has an overlay over the data directory of a stopped server, a host name, and on
//! request a machine id and a container's id.

use crate::facts::Facts;
use crate::folder::Folder;
use crate::programs;
use crate::server::Server;
use anyhow::{Context, Result};
use nix::unistd::Uid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A file system that puts a layer over an image.
#[derive(Clone, Copy, Debug)]
pub enum Overlay {
    /// The kernel's overlayfs.
    Kernel,
    /// fuse-overlayfs, as in rootless Podman.
    Fuse,
}

/// A server whose data directory is a mounted file system. Dropping it stops the server, then unmounts the file system.
#[derive(Debug)]
pub struct Container {
    /// The server.
    pub server: Server,
    _mount: Mount,
}

/// A file system that is mounted at `root` in this folder.
#[derive(Debug)]
struct Mount(TempDir);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = programs::output(Command::new("umount").arg("--lazy").arg(self.0.path().join("root")));
    }
}

/// Returns whether containers of this kind can run here. Prints the reason if they cannot.
pub fn can_run(overlay: Overlay) -> bool {
    let missing = match overlay {
        _ if !Uid::effective().is_root() => "only root can mount file systems and set host names",
        Overlay::Fuse if !Path::new("/dev/fuse").exists() => "/dev/fuse is missing",
        Overlay::Fuse if Command::new("fuse-overlayfs").arg("--version").output().is_err() => {
            "fuse-overlayfs is not installed"
        }
        _ => return true,
    };
    eprintln!("skipped: {missing}");
    false
}

impl Server {
    /// Starts a container whose image is this stopped server's data directory.
    pub fn container(&self, overlay: Overlay, facts: Facts) -> Result<Container> {
        let command: &[&str] = match overlay {
            Overlay::Kernel => &["mount", "-t", "overlay", "overlay", "-o"],
            Overlay::Fuse => &["fuse-overlayfs", "-o", "allow_other", "-o"],
        };
        let layers = format!("lowerdir={},upperdir=upper,workdir=work", self.folder.path().display());
        self.mounted(&[command, &[layers.as_str()]].concat(), facts)
    }

    /// Starts this stopped server where its data directory is bound to another path.
    pub fn bound(&self) -> Result<Container> {
        let folder =
            self.data().canonicalize()?.parent().context("no folder")?.to_string_lossy().into_owned();
        self.mounted(&["mount", "--bind", folder.as_str()], self.facts.clone().unwrap_or_default())
    }

    /// Starts a server on what a command mounts.
    fn mounted(&self, command: &[&str], facts: Facts) -> Result<Container> {
        let owner = self.folder.owner;
        let place = tempfile::Builder::new().prefix("sfmount").tempdir()?;
        owner.give(place.path())?;
        for name in ["upper", "work", "root"] {
            let path = place.path().join(name);
            fs::create_dir(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o700))?;
            owner.give(&path)?;
        }
        let mut mount = Command::new(command[0]);
        programs::output(mount.args(&command[1..]).arg("root").current_dir(place.path()))?;
        let mount = Mount(place);
        let folder = Folder::new(self.folder.programs.clone(), owner)?;
        symlink(mount.0.path().join("root/data"), folder.data())?;
        let mut server = Self::new(folder, self.environment.clone())?;
        server.facts = Some(facts);
        server.start_again()?;
        Ok(Container { server, _mount: mount })
    }

    /// Sets the facts by which this stopped server's machine is known from the next start on.
    pub fn set_facts(&mut self, facts: Facts) {
        self.facts = Some(facts);
    }

    /// Changes the host name that this running server sees.
    pub fn rename_host(&self, host: &str) -> Result<()> {
        let write = "echo \"$0\" >/proc/sys/kernel/hostname";
        let uts = format!("--uts=/proc/{}/ns/uts", self.pid()?);
        programs::output(Command::new("nsenter").args([&uts, "sh", "-c", write, host])).map(drop)
    }
}
