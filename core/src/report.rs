//! The report on a server.
//!
//! | module | contents |
//! | --- | --- |
//! | [`page`] | the status page |
//! | [`history`] | recent activity of the server |
//! | [`progress`] | progress of long calls |
//! | [`standing`] | how urgently tags need attention |

pub mod history;
pub mod page;
pub mod progress;
pub mod standing;
