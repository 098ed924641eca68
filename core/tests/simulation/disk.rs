//! What survives the end of the server, and what of it survives the end of the machine.

use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::server::state::{FileIdentity, State, StateError};
use std::rc::Rc;

/// A file with a state.
#[derive(Clone)]
pub struct File {
    pub text: String,
    /// Which file of all that there ever were.
    pub inode: u64,
    /// Whether the disk has the content.
    pub synced: bool,
}

impl File {
    pub fn state(&self) -> Result<State, StateError> {
        State::from_text(self.text.as_bytes())
    }

    /// The worker ids that it tells of.
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
                    .map(|high_water_mark| high_water_mark.node.worker);
                marked.chain(state.lease.iter().map(|lease| lease.worker)).collect()
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
    /// What is being written under another name.
    pub new: Option<Rc<File>>,
    /// Which file has the name after the end of the machine.
    pub named: Option<File>,
    pub marker_file: bool,
    /// The wall clock at the last checkpoint.
    pub checkpoint: Option<UnixMicros>,
}

impl Disk {
    /// The machine ends. What was not synced is lost, or not, as it happens.
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

    /// Another file is put in place.
    pub fn put(&mut self, file: Option<File>) {
        self.file.clone_from(&file);
        self.named = file;
    }
}
