//! A session's calls for snowflake ids. They come from the block that it holds, or from the generator. Where that gives
//! nothing, the session has the mark raised, a worker id leased or another node issue, or waits for the clock.

mod buffered;
mod error;
mod wait;

pub use buffered::{Session, take, take_fitting};
pub use error::SessionError;
pub use wait::{Caller, Waited, wait_and_take};
