//! The period that a dated series counts in. SQL says which one it is; it is believed for some seconds.

use snowflake_ids_core::UnixMicros;

/// A period that has been looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first day, in days since 1970-01-01.
    pub(super) day: i32,
    /// When that was looked up.
    pub(super) since: UnixMicros,
}
