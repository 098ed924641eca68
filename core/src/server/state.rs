//! A server's state: its identity, the node that it issues as, and the high-water mark of each node.
//!
//! A *high-water mark* is the position below which a node may issue. It is raised in the state, and the state is made
//! durable, before positions below it are handed out. A server that starts again begins at the high-water mark, so
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
