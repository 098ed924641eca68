//! A server's state: its identity, the node under which it issues, and the high-water mark of each node.
//!
//! A *high-water mark* is the position below which a node may issue. The server raises the mark in the state, and makes
//! the state durable, before it hands out positions below the mark. After a restart the server begins at the mark, so
//! clock steps and crashes need no special case. These modules are pure functions on the state. The shell keeps the
//! state in a file, and writes the file before it acts on the new state.

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
