//! The tables of a database: tags, registries in use, received ids. [`reserve`] reserves the next ids of a tag.

use crate::registry::link::Endpoint;
use crate::registry::wire;
use crate::tag::directory::Tag;
use crate::tag::reservation::{Demand, HighWaterMark, Outcome, Reached, Reserved, Share, TagRow, Unfit};
use crate::tag::segment::Period;

/// The treatment of a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// The row is skipped.
    Skip,
    /// The call waits until the transaction's lock timeout, and then fails.
    Wait,
}

/// The tables of the extension, within a transaction. Each call is a statement.
pub trait Tables {
    /// Reason why a statement failed.
    type Error;

    /// Returns the OID of the table of tags; None if the extension was dropped. After None, no other method may be
    /// called.
    fn source(&mut self) -> Option<u32>;
    /// Returns a tag in UTF-8. Returns None if the conversion fails.
    fn to_utf8(&mut self, tag: &Tag) -> Option<String>;
    /// Returns a tag in this database's encoding. Returns None if the encoding lacks a character of the tag.
    fn tag(&mut self, text: &str) -> Option<Tag>;
    /// Returns the highest id that rolled-back transactions of this database handed out.
    fn high_water_mark(&mut self, tag: &Tag) -> Option<HighWaterMark>;

    /// Reads a row, and locks it until the end of the transaction. Returns None if the row does not exist, or is locked
    /// and `wait` is [`LockWait::Skip`]. The period of the row is the period of
    /// [`present`](crate::tag::tag_rows::present) in the row's time zone, and never earlier than the stored period: see
    /// [`TagRow::now`].
    fn read(&mut self, tag: &Tag, wait: LockWait) -> Result<Option<TagRow>, Self::Error>;
    /// Returns true if the tag exists, or an open transaction may create it. Does not wait.
    fn is_taken(&mut self, tag: &Tag) -> Result<bool, Self::Error>;
    /// Creates a tag if it does not exist. The tag's ids are this registry's share.
    fn create(&mut self, tag: &Tag, share: Share) -> Result<(), Self::Error>;
    /// Writes that ids up to `max_id` are handed out or reserved in this period. Also writes the cluster's system
    /// identifier and its timeline.
    fn write(&mut self, tag: &Tag, max_id: i64, period: Period, version: i64) -> Result<(), Self::Error>;
    /// Moves a row's highest id back to `before`, if the row's highest id is `last`, its version is `version`, and it
    /// has no periods.
    fn set_back(&mut self, tag: &Tag, before: i64, last: i64, version: i64) -> Result<(), Self::Error>;
    /// Returns a random number that no row ever had as its version.
    fn new_version(&mut self) -> i64;

    /// Returns whether this server is in a cluster whose nodes share a registry. Other nodes may then issue the same ids as
    /// this database's own table.
    fn is_clustered(&mut self) -> Result<bool, Self::Error>;
    /// Returns the registries in use, in order. The list is empty if the database is its own registry.
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Self::Error>;
    /// Records the timeline and the fork of a registry if they are news: see [`wire::RegistryName::after`].
    fn record_seen(&mut self, registry: &wire::RegistryName) -> Result<(), Self::Error>;
    /// Locks the table of received ids until the transaction ends. Fails after a timeout if a session that changes the
    /// registries in use has locked the table.
    fn lock_received(&mut self) -> Result<(), Self::Error>;
    /// Returns the highest id that a registry has sent for a tag; None if this server received no id.
    fn received(&mut self, identity: &str, tag: &Tag) -> Result<Option<Received>, Self::Error>;
    /// Records the highest id that a registry has sent for a tag. Records nothing if a session that attached a column
    /// has already recorded a higher id. The received ids are then not handed out.
    fn receive(&mut self, identity: &str, tag: &Tag, reserved: &Reserved) -> Result<(), Self::Error>;
}

/// The highest id that was received from a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The period and the highest id.
    pub reached: Reached,
    /// The version of the registry's row after that reservation.
    pub version: i64,
}

/// Reserves the next ids of a tag. `demand` is called while the row is locked, so it sees all changes that other
/// transactions committed. If `create` is a share, an unknown tag is created with the ids of this share.
pub fn reserve<T: Tables>(
    tables: &mut T,
    tag: &Tag,
    create: Option<Share>,
    wait: LockWait,
    demand: impl FnOnce(&mut T, &TagRow) -> Result<Demand, Unfit>,
) -> Result<Outcome, T::Error> {
    let mut row = tables.read(tag, wait)?;
    if row.is_none() {
        let is_taken = tables.is_taken(tag)?;
        row = match create {
            // If another transaction is creating the tag, a creation here would wait for that transaction.
            // `LockWait::Skip` therefore does not create the tag.
            Some(share) if !is_taken || wait == LockWait::Wait => {
                tables.create(tag, share)?;
                tables.read(tag, wait)?
            }
            _ if !is_taken => return Ok(Outcome::Unknown),
            _ => None,
        };
    }
    let Some(row) = row else { return Ok(Outcome::Locked) };
    let outcome = match demand(tables, &row) {
        Ok(demand) => row.reserve(&demand, tables.new_version()),
        Err(unfit) => Outcome::Unfit(unfit),
    };
    if let Outcome::Reserved(reserved) = &outcome {
        tables.write(tag, reserved.supply.range.last(), row.period, reserved.version)?;
    }
    Ok(outcome)
}
