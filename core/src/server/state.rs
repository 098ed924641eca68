//! A server's state: its identity, the node that it issues as, and the high-water mark of each node.
//!
//! A *mark*, the high-water mark, is the position below which a node may issue. It is raised in the state, the
//! state is made durable, and only then are positions below it handed out. So a server that starts again begins at
//! the mark, and clock steps and crashes need no special case. What follows are pure transitions of the state;
//! the shell keeps it in a file, and writes it before it acts on it.

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
