//! Sequences of dense ids: tags, their buffers in memory, and what is reserved for them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`segment`] | the two buffers of a tag |
//! | [`slot`] | a tag's slot in shared memory |
//! | [`step`] | how many ids to reserve next, and when |
//! | [`request`] | asking for a refill, and being told |
//! | [`requested`] | which places have requests |
//! | [`definition`] | what a tag's row says of its ids |
//! | [`reservation`] | reserving the next ids of a tag |
//! | [`tag_rows`] | reserving from a table of tags |
//! | [`directory`] | which buffers are which tag's |
//! | [`places`] | which tags may have buffers, and which give them up |
//! | [`own`] | tags that a transaction has changed itself |
//! | [`floors`] | ids that transactions gave out by themselves and did not commit, in memory that the caller provides. A tag keeps its note |
//! | [`counts`] | what is counted of tags, and can be set back while others add to it |
//! | [`privilege`] | what a role may do with a tag |
//! | [`bound_sequence`] | sequences whose numbers are ids |

pub mod bound_sequence;
pub mod counts;
pub mod definition;
pub mod directory;
pub mod floors;
pub mod own;
pub mod places;
pub mod privilege;
pub mod request;
pub mod requested;
pub mod reservation;
pub mod segment;
pub mod slot;
pub mod step;
pub mod tag_rows;
