//! The saved-range file on a disk. A failure of the machine keeps all synced bytes, and only a part of the later bytes.

use super::chance::Chance;
use super::process::{Pause, Wait};
use snowflake_ids_core::server::saved_range_file::SavedRangeFile;
use std::cell::RefCell;
use std::rc::Rc;

/// The content of the disk.
#[derive(Default)]
pub struct Disk {
    pub text: Option<Vec<u8>>,
    /// The number of bytes at the end that are not synced.
    unsynced: usize,
}

impl Disk {
    /// Fails the machine.
    pub fn fail(&mut self, chance: &mut Chance) {
        if let Some(text) = &mut self.text {
            text.truncate(text.len() - chance.below(self.unsynced + 1));
        }
        self.unsynced = 0;
    }
}

/// The file, as a process uses it.
pub struct File<'a> {
    pub disk: Rc<RefCell<Disk>>,
    pub pause: &'a Pause,
}

impl File<'_> {
    fn stop(&self) {
        self.pause.suspend(Wait::Turn);
    }
}

impl SavedRangeFile for File<'_> {
    type Error = serde_json::Error;

    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error> {
        self.stop();
        Ok(self.disk.borrow().text.clone())
    }

    fn append(&self, text: &[u8]) -> Result<(), Self::Error> {
        self.stop();
        {
            let Disk { text: all, unsynced } = &mut *self.disk.borrow_mut();
            if let Some(all) = all {
                all.extend(text);
                *unsynced += text.len();
            }
        }
        self.stop();
        self.disk.borrow_mut().unsynced = 0;
        self.stop();
        Ok(())
    }

    fn say_lost(&self, error: &Self::Error) {
        panic!("{error}");
    }

    fn replace(&self, text: &[u8]) -> Result<(), Self::Error> {
        self.stop();
        *self.disk.borrow_mut() = Disk { text: Some(text.to_vec()), unsynced: 0 };
        self.stop();
        Ok(())
    }
}
