//! The names that most tests use.

pub use crate::builder::Builder;
pub use crate::cluster::Cluster;
pub use crate::load::Taken;
pub use crate::registry::{auto, wait_for_id};
pub use crate::server::{Server, Shutdown};
pub use crate::sessions::{Ends, at_once};
pub use crate::sql::Session;
pub use crate::{cases, ids, sql, wait};
pub use anyhow::{Context, Result, bail, ensure};
pub use postgres::error::{DbError, SqlState};
pub use postgres::{Client, NoTls};
pub use std::collections::BTreeSet;
pub use std::thread;
pub use std::time::{Duration, Instant};
