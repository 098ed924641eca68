//! A server's state: the server's identity, the node under which the server issues ids, and the high-water mark of each
//! node. These modules are pure functions on the state.

mod chosen;
mod error;
mod file;
mod high_water_marks;
mod leased;
mod machine;
mod opening;
mod pairs;
mod reserved;
mod source;
mod stored;

pub use error::StateError;
pub use file::FILE;
pub use high_water_marks::{MAX_SLOTS, NodeHighWaterMark, NodeHighWaterMarks};
pub use machine::Machine;
pub use opening::time_to_replicate;
pub use source::WorkerIdSource;
pub use stored::{Chosen, Copied, DataDirectory, FileIdentity, First, Here, Identity, State};
