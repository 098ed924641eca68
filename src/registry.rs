//! The source of ids: the tables of this database, or those of one or several registries that many servers share.
//!
//! A registry is asked by one statement, and answers when what it did is durable. The same code answers there that is
//! called directly where the tables are this server's own.
//!
//! | module | holds |
//! | --- | --- |
//! | [`serve`] | this database as a registry |
//! | [`call`] | connections to those that are other servers |
//! | [`join`] | beginning to use some, and ending it |
//! | [`handover`] | tags that go from one to another |
//! | [`seeded`] | tags that were raised for a column |

pub mod call;
pub mod handover;
pub mod join;
pub mod seeded;
pub mod serve;

pub use handover::look;
pub use serve::this;
