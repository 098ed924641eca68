//! A server's state: its identity, the node under which it issues, and the high-water mark of each node.
//! These modules are pure functions on the state.

mod chosen;
mod error;
mod file;
mod high_water_marks;
mod leased;
mod opening;
mod reserved;
mod stored;

pub use error::StateError;
pub use file::FILE;
pub use high_water_marks::{MAX_SLOTS, NodeHighWaterMark, NodeHighWaterMarks};
pub use stored::{Chosen, DataDirectory, FileIdentity, First, Here, Identity, State};
