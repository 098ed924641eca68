//! The machine and the container of a server. They distinguish a data directory from its copies on file systems that keep no
//! creation times and give copies the inode of the original.

use serde::{Deserialize, Serialize};

/// The types of file systems, as in `statfs`.
const OVERLAY: i64 = 0x794c_7630;
const FUSE: i64 = 0x6573_5546;

/// The number of hexadecimal digits in a machine id, and in the id of a container.
const MACHINE_DIGITS: usize = 32;
const CONTAINER_DIGITS: usize = 64;

/// The machine and the container of a server. An empty text is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The id of the installed operating system.
    pub id: String,
    /// The id of the container.
    pub container: String,
}

impl Machine {
    /// Returns the machine and container; None if the type of the file system is not one on which copies of a directory can
    /// have the same inode. `id` is the content of `/etc/machine-id`, and `mounts` that of `/proc/self/mountinfo`.
    pub fn of(file_system: i64, id: &str, mounts: &str) -> Option<Self> {
        let id = Some(id.trim()).filter(|id| is_hex(id, MACHINE_DIGITS)).unwrap_or_default();
        matches!(file_system, OVERLAY | FUSE)
            .then(|| Self { id: id.into(), container: container(mounts).unwrap_or_default().into() })
    }
}

/// Returns the id of the container. Docker, Podman, containerd and CRI-O mount the container's `/etc/hostname` from a folder
/// that has the container's id as its name. The last mount covers earlier ones.
fn container(mounts: &str) -> Option<&str> {
    let mount = mounts.lines().rev().find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let source = fields.next()?;
        (fields.next()? == "/etc/hostname").then_some(source)
    });
    mount?.split('/').find(|folder| is_hex(folder, CONTAINER_DIGITS))
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
