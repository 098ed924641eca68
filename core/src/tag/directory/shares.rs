//! The number of slots of each database's tags.

/// The number of slots that the tags of one database have.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatabaseShare {
    database: u32,
    slots: u32,
}

/// The databases whose tags have slots, in memory that the caller provides.
#[derive(Debug, Default)]
pub struct Shares<'m> {
    shares: &'m mut [DatabaseShare],
    len: usize,
}

impl<'m> Shares<'m> {
    pub(super) fn new(shares: &'m mut [DatabaseShare]) -> Self {
        Self { shares, len: 0 }
    }

    fn used(&self) -> &[DatabaseShare] {
        self.shares.get(..self.len).unwrap_or_default()
    }

    fn at(&self, database: u32) -> Option<usize> {
        self.used().iter().position(|share| share.database == database)
    }

    pub(super) fn add(&mut self, database: u32) {
        let at = self.at(database).unwrap_or(self.len);
        let Some(share) = self.shares.get_mut(at) else { return };
        if at == self.len {
            *share = DatabaseShare { database, slots: 0 };
            self.len += 1;
        }
        share.slots += 1;
    }

    pub(super) fn remove(&mut self, database: u32) {
        let Some(at) = self.at(database) else { return };
        let Some(share) = self.shares.get_mut(at) else { return };
        share.slots -= 1;
        if share.slots == 0 {
            self.len -= 1;
            self.shares.swap(at, self.len);
        }
    }

    /// Returns the number of slots of a database.
    pub fn of(&self, database: u32) -> u32 {
        self.at(database).and_then(|at| self.shares.get(at)).map_or(0, |share| share.slots)
    }

    /// Returns the number of slots of a database, as the clock sweep compares it: the highest number if no other database has
    /// slots, because the sweep then need not compare.
    pub fn rank(&self, database: u32) -> u32 {
        if self.len > 1 { self.of(database) } else { u32::MAX }
    }

    /// Returns the number of slots of the database with the most slots.
    pub fn most(&self) -> u32 {
        self.used().iter().map(|share| share.slots).max().unwrap_or(0)
    }
}
