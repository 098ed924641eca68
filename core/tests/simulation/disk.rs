//! The files that survive a server's end, and the part of the files that survives the machine's end.

use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::server::state::{FileIdentity, State, StateError};
use std::rc::Rc;

/// A file with a server state.
#[derive(Clone)]
pub struct File {
    pub text: String,
    /// The file's number among all files ever created.
    pub inode: u64,
    /// Whether the content is on disk.
    pub synced: bool,
}

impl File {
    pub fn state(&self) -> Result<State, StateError> {
        State::from_text(self.text.as_bytes())
    }

    /// The worker ids that the file names.
    pub fn workers(&self) -> Vec<u32> {
        self.state().map_or_else(
            |_| Vec::new(),
            |state| {
                let others = state.others.layouts.iter().flat_map(|other| &other.of.high_water_marks);
                let marked = state
                    .own
                    .high_water_marks
                    .iter()
                    .chain(others)
                    .map(|high_water_mark| high_water_mark.node.worker_id);
                marked.chain(state.lease.iter().map(|lease| lease.worker_id)).collect()
            },
        )
    }

    pub fn file_identity(&self) -> FileIdentity {
        FileIdentity { inode: self.inode, at: None }
    }
}

/// The data directory.
#[derive(Clone, Default)]
pub struct Disk {
    pub file: Option<File>,
    /// The file that is being written under a temporary name.
    pub new: Option<Rc<File>>,
    /// The file that would have the state file's name after the machine's end.
    pub named: Option<File>,
    pub marker_file: bool,
    /// The wall clock at the last checkpoint.
    pub checkpoint: Option<UnixMicros>,
}

impl Disk {
    /// Ends the machine. Unsynced data is lost at random.
    pub fn lose_unsynced(&mut self, name_is_lost: bool) {
        self.new = None;
        if name_is_lost {
            self.file.clone_from(&self.named);
        }
        if let Some(file) = self.file.as_mut().filter(|file| !file.synced) {
            file.text.clear();
        }
        self.named.clone_from(&self.file);
    }

    /// Puts another file in place.
    pub fn put(&mut self, file: Option<File>) {
        self.file.clone_from(&file);
        self.named = file;
    }
}
