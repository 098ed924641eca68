//! Where ids come from: the tables of this database, or those of one or several registries that many servers share.
//!
//! A registry is asked by one statement, and answers when what it did is durable. The same code answers there that is
//! called directly where the tables are this server's own.
//!
//! | module | holds |
//! | --- | --- |
//! | [`serve`] | what a registry does |
//! | [`call`] | connections to those that are other servers |
//! | [`error`] | how a session is told why one gave no response |
//! | [`session`] | asking one, in a session |
//! | [`join`] | beginning to use some, and ending it |
//! | [`handover`] | tags that go from one to another |
//! | [`seeded`] | tags that were raised for a column |

pub mod call;
mod error;
pub mod handover;
pub mod join;
pub mod seeded;
pub mod serve;
mod session;

pub use snowflake_ids_core::registry_error::RegistryError;

use crate::pg::catalog::Source;
use crate::pg::{cluster, server};
use snowflake_ids_core::wire;

/// This database as a registry. Only within a transaction, and where there is the extension.
pub fn this() -> Option<wire::Registry> {
    let (extension, database) = (crate::pg::catalog::extension()?, server::database());
    let identity = format!("{}/{database}/{extension}", cluster::system_identifier());
    Some(wire::Registry { identity, timeline: cluster::timeline() })
}

/// The role by whose user mapping registries are reached: the owner of the table of tags.
pub fn role() -> Option<pgrx::pg_sys::Oid> {
    Source::find().map(Source::owner)
}
