//! Dense series: numbers of a key are reserved in its row a few at a time and handed out from memory; what is left over goes back
//! to the row. So nothing is missing unless a process dies, a call is cancelled or a key is set.
//!
//! In a database that draws from a registry on another server, numbers are reserved in the registry's row of the key, and what is left
//! over goes back there. The key's row here says how far it was received: [`crate::number_registry`] is what the registry does.
//!
//! Everything here is sequential: the server has a lock around each [`Partition`], and one around the [`Requests`].
//!
//! | module | holds |
//! | --- | --- |
//! | [`counter`] | what a key is called in memory, and what is known of it there |
//! | [`memory`] | the counters of one partition |
//! | [`requests`] | what sessions ask of the worker |
//! | [`left_over`] | what they had left at a stop, as the text of a file |
//! | [`host`] | what the worker touches |
//! | [`worker`] | its round |

pub mod counter;
pub mod host;
pub mod left_over;
pub mod memory;
mod pace;
pub mod requests;
pub mod worker;

pub use counter::{
    Counter, CounterKey, CounterKeys, Given, Left, SHORT_TEXT_BYTES, ShortKey, ShortText, Taken,
};
pub use host::{Definition, Found, Host, Origin, Reserve, Reserved, RoundCounts, RowKey, Rows, WriteBack};
pub use memory::{Held, Miss, Partition};
pub use requests::{Answer, Asked, Pending, Refusal, Request, Requests, Ticket};
pub use worker::{Served, begin, serve};
