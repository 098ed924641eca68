//! Items that all sections use.

pub use crate::effort::Effort;
pub use crate::key::{Key, NOTE};
pub use crate::pgbench::{Attempt, Load, Stop, Throughput};
pub use crate::report::{Goal, Outcome, Table};
pub use crate::rounds::{Contestant, Measured, interleave};
pub use crate::session::{Cost, Session};
pub use crate::stats::Spread;
pub use crate::wal::Flushes;
pub(crate) use crate::{server, wal};
pub use anyhow::{Result, ensure};
pub use snowflake_ids_server_tests::Server;
