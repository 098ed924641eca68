//! The source of ids: the tables of this database, or one or more registries that many servers share.
//!
//! A registry serves a request in one statement, and answers after the changes for this request are durable. A server that
//! uses its own tables calls the same code directly.
//!
//! | module | holds |
//! | --- | --- |
//! | [`serve`] | this database as a registry |
//! | [`call`] | connections to registries on other servers |
//! | [`join`] | the transaction in which this database begins or stops using registries |
//! | [`handover`] | tags that move between this database and registries |
//! | [`cluster`] | the nodes of a Citus cluster, and the call by which they begin to use one registry |
//! | [`setup`] | the steps by which a server joins a registry in one call |
//! | [`seeded`] | tags that registries raised above the ids of a column |

pub mod call;
pub mod cluster;
pub mod handover;
pub mod join;
pub mod seeded;
pub mod serve;
pub mod setup;

pub use serve::this;
