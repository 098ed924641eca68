//! A session's calls for snowflake ids. An id comes from the session's block (positions that the session took earlier)
//! or from the generator. If neither has an id, the session raises the high-water mark, requests a worker id, switches
//! to another node, or waits.

mod buffered;
mod error;
mod wait;

pub use buffered::{Session, take};
pub use error::SessionError;
pub use wait::{Caller, Waited, wait_and_take};
