//! The extension's tables, with the columns that are read without SQL.

use crate::pg::catalog::{Table, Type};
use crate::pg::extension;

/// Segment tags, and their highest reserved ids.
pub static SEGMENT: Table = Table::new(
    c"segment",
    &[
        (c"tag", Type::Text),
        (c"max_id", Type::Bigint),
        (c"increment", Type::Bigint),
        (c"remainder", Type::Bigint),
        (c"reset", Type::Text),
    ],
);

/// Tags whose use requires privileges.
pub static SEGMENT_RESTRICTED: Table = Table::new(c"segment_restricted", &[(c"tag", Type::Text)]);

/// Privileges of roles on tags.
pub static SEGMENT_PRIVILEGE: Table = Table::new(
    c"segment_privilege",
    &[(c"tag", Type::Text), (c"grantee", Type::Oid), (c"privileges", Type::Text)],
);

/// Named generators.
pub static GENERATOR: Table = Table::new(
    c"generator",
    &[
        (c"name", Type::Text),
        (c"layout", Type::Text),
        (c"modulus", Type::Integer),
        (c"remainder", Type::Integer),
        (c"sequence_start", Type::Text),
        (c"cache", Type::Integer),
    ],
);

/// Definitions of series.
pub static SERIES: Table = Table::new(
    c"series",
    &[
        (c"name", Type::Text),
        (c"kind", Type::Text),
        (c"key_type", Type::Text),
        (c"start", Type::Bigint),
        (c"max_value", Type::Bigint),
        (c"reset", Type::Text),
        (c"time_zone", Type::Text),
        (c"format", Type::Text),
        (c"restricted", Type::Boolean),
        (c"id", Type::Bigint),
        (c"step", Type::Integer),
        (c"max_step", Type::Integer),
        (c"sections", Type::Integer),
        (c"scope", Type::Text),
    ],
);

/// Counters of series with keys of type bigint.
pub static SERIES_BIGINT: Table = Table::new(c"series_bigint", &[]);
/// Counters of series with keys of type text.
pub static SERIES_TEXT: Table = Table::new(c"series_text", &[]);
/// Counters of series with keys of type uuid.
pub static SERIES_UUID: Table = Table::new(c"series_uuid", &[]);

/// Privileges of roles on series.
pub static SERIES_PRIVILEGE: Table = Table::new(
    c"series_privilege",
    &[(c"series", Type::Bigint), (c"grantee", Type::Oid), (c"privileges", Type::Text)],
);

/// Worker ids, and the leases of these worker ids.
pub static WORKER_LEASE: Table = Table::new(c"worker_lease", &[]);

/// Worker ids that servers had chosen themselves before the extension was created.
pub static WORKER_CHOSEN: Table = Table::new(c"worker_chosen", &[]);

/// The registries (databases on other servers) that this database gets its ids from.
pub static REGISTRY_SERVER: Table = Table::new(
    c"registry_server",
    &[(c"position", Type::Integer), (c"server", Type::Name), (c"identity", Type::Text)],
);

/// The highest id that was received from each registry for each tag.
pub static RECEIVED: Table = Table::new(c"received", &[(c"identity", Type::Text), (c"tag", Type::Text)]);

/// Promotions of this database's server, and promotions of other servers that nodes saw.
pub static FORK: Table = Table::new(
    c"fork",
    &[(c"fork", Type::Bigint), (c"system_identifier", Type::Bigint), (c"timeline", Type::Integer)],
);

/// Sequences whose numbers come from this extension.
pub static SEQUENCE_BINDING: Table = Table::new(
    c"sequence_binding",
    &[
        (c"sequence", Type::Oid),
        (c"tag", Type::Text),
        (c"generator", Type::Text),
        (c"checked", Type::Boolean),
        (c"single", Type::Boolean),
        (c"identity", Type::Letter),
    ],
);

/// Returns the OID of the extension in this database. A lower OID means an earlier CREATE EXTENSION. Returns None if the
/// extension is not installed, or has no table of worker ids. Call only within a transaction.
pub fn extension() -> Option<u32> {
    WORKER_LEASE.find().and(extension::find()).map(pgrx::pg_sys::Oid::to_u32)
}
