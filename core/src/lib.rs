//! The algorithms of `snowflake_ids`: 64-bit ids that are unique across servers and ordered by time, and dense
//! ones per tag, out of segments reserved ahead.
//!
//! Nothing here knows Postgres, does I/O or reads a clock. Time is an argument ([`Clock`]). Shared state is
//! a plain struct of atomics that the shell places into shared memory. Errors say what they are ([`Kind`])
//! without knowing an SQLSTATE. So all of it runs under proptest, threads and loom.
//!
//! | module | holds |
//! | --- | --- |
//! | [`layout`] | which bits say when, who and which; its text form and the presets |
//! | [`id`] | fields to ids and back, the bounds of an instant |
//! | [`position`] | ticks, positions, the bits of a node |
//! | [`snowflake`] | the generator: a hybrid logical clock in one cache line |
//! | [`rules`] | what the generator may do |
//! | [`shard`] | which ids are a shard's |
//! | [`drift`] | ids too far ahead of the clock, and every other refusal |
//! | [`anchor`] | whether the wall clock can be followed |
//! | [`issuer`] | which node issues on this server, and up to where |
//! | [`session`] | a session's calls for ids |
//! | [`state`] | what a server keeps of itself: high-water marks, which node it issues as |
//! | [`lease`] | worker ids on lease |
//! | [`lease_worker`] | leasing a worker id, renewing the lease, noticing its loss |
//! | [`lease_launch`] | when a lease worker is started, and in which database |
//! | [`worker_registry`] | what a registry answers about worker ids |
//! | [`block`] | what a session holds of the ids it took |
//! | [`bound_sequence`] | sequences whose numbers are ids |
//! | [`encode`] | ids as text |
//! | [`uuid`] | UUIDs that are made as ids are |
//! | [`definition`] | what a tag's row says of its ids |
//! | [`privilege`] | what a role may do with a tag |
//! | [`reservation`] | reserving the next ids of a tag |
//! | [`wire`] | what servers and a registry say to each other |
//! | [`refill_worker`] | the worker that reserves ids ahead of demand |
//! | [`admission`] | which requests a registry serves |
//! | [`tag_rows`] | reserving from a table of tags |
//! | [`tag_registry`] | what a registry does about tags |
//! | [`registry_link`] | the registries that a database uses |
//! | [`registry_client`] | sending requests to them |
//! | [`citus`] | a cluster's coordinator, and what is wrong with its nodes |
//! | [`registry_error`] | why one gave no response |
//! | [`backoff`] | pauses that grow with each failure |
//! | [`history`] | what the server did lately |
//! | [`handover`] | beginning to use registries, and ending it |
//! | [`failover`] | which of several registries to ask next |
//! | [`hosts`] | lists of hosts, one host at a time |
//! | [`segment`] | the two buffers of a tag |
//! | [`step`] | how many ids to reserve next, and when |
//! | [`request`] | asking for a refill, and being told |
//! | [`requested`] | which places have requests |
//! | [`directory`] | which buffers are which tag's |
//! | [`own`] | tags that a transaction has changed itself |
//! | [`places`] | which tags may have buffers, and which give them up |
//! | [`turns`] | which of those that serve makes room |
//! | [`locked`] | a table of the extension that somebody has locked |
//! | [`log_limit`] | what the log was told already |
//! | [`serial`] | numbers as dated text |
//! | [`series`] | one sequence for each key |
//! | [`clock`] | instants |
//! | [`guard`] | rules that a test may leave out |
//! | [`form`] | which release wrote a file, and in which form |
//! | [`carry_over`] | ids that are left when the server stops, as text |
//! | [`carry_over_file`] | what a server does with the file that says so |
//! | [`named`] | what a named generator's row says |
//! | [`length`] | how long a text may be |
//! | [`page`] | the status page |
//! | [`counts`] | what is counted of tags, and can be set back while others add to it |
//! | [`progress`] | how far long calls have come |
//! | [`error`] | what all errors can say |

#![forbid(unsafe_code)]

pub mod accept;
pub mod admission;
pub mod anchor;
pub mod backoff;
pub mod block;
pub mod bound_sequence;
pub mod carry_over;
pub mod carry_over_file;
pub mod citus;
pub mod clock;
pub mod counts;
pub mod definition;
pub mod directory;
pub mod drift;
pub mod encode;
pub mod error;
pub mod failover;
pub mod floors;
pub mod form;
pub mod guard;
pub mod handover;
pub mod history;
pub mod hosts;
pub mod id;
pub mod index;
pub mod issuer;
pub mod layout;
pub mod lease;
pub mod lease_launch;
pub mod lease_worker;
pub mod length;
pub mod locked;
pub mod log_limit;
pub mod named;
pub mod own;
pub mod page;
pub mod places;
pub mod position;
pub mod privilege;
pub mod progress;
pub mod refill_worker;
pub mod registry_client;
pub mod registry_error;
pub mod registry_link;
pub mod request;
pub mod requested;
pub mod reservation;
pub mod rules;
pub mod segment;
pub mod serial;
pub mod series;
pub mod session;
pub mod shard;
pub mod snowflake;
pub mod state;
pub mod step;
mod sync;
pub mod tag_registry;
pub mod tag_rows;
pub mod turns;
pub mod uuid;
pub mod wire;
pub mod worker_registry;

pub use block::Block;
pub use clock::{Clock, UnixMicros};
pub use drift::{Cause, Drift, GeneratorError};
pub use encode::{Format, TextError};
pub use error::{Explain, Kind};
pub use id::{Decoded, IdError, Node};
pub use layout::{Field, Layout, LayoutError, Order, PRESETS, TickError, Widths};
pub use position::{Issued, NodeBits, Position, PositionRange, Tick};
pub use rules::{ClockRollback, Rules, SequenceStart};
pub use shard::{Shard, ShardError};
pub use snowflake::{Generator, Snapshot, StepBack, Taken};
pub use uuid::{Filler, IdOrUuid, NeitherError, Uuid, UuidError};
