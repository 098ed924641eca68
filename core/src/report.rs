//! The report on a server.
//!
//! | module | holds |
//! | --- | --- |
//! | [`page`] | the status page |
//! | [`history`] | what the server did lately |
//! | [`progress`] | how far long calls have come |

pub mod history;
pub mod page;
pub mod progress;
