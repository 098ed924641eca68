//! A server's state: its identity, the node that it issues as, and the high-water mark of each node.
//!
//! A *mark*, the high-water mark, is the position below which a node may issue. It is raised in the state, the
//! state is made durable, and only then are positions below it handed out. So a server that starts again begins at
//! the mark, and clock steps and crashes need no special case. What follows are pure transitions of the state;
//! the shell keeps it in a file, and writes it before it acts on it.

mod chosen;
mod error;
mod file;
mod leased;
mod marks;
mod opening;
mod reserved;
mod stored;

pub use error::StateError;
pub use file::FILE;
pub use marks::{MAX_PLACES, Mark, Marks};
pub use stored::{Birth, Chosen, DataDirectory, First, Here, Identity, State};
