//! Which of several databases is the registry.

/// A database with the extension, by how it ranks as the registry: the lowest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ranked {
    /// 1 where it uses a registry on another server; else when the extension was created, as far as its oid tells.
    pub rank: u32,
    /// The database.
    pub database: u32,
}
