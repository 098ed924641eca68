//! The sections of a run. Each starts its own server, measures one thing and reports what it found.

mod bound;
mod call;
mod fill;
mod generators;
mod index;
mod insert;
mod marginal;
mod plan;
mod prelude;
mod registry;
mod reserve;
mod scale;
mod segment;
mod select;
mod series;
mod shard;
mod stream;
mod uuid;

use crate::effort::Effort;
use crate::report::Outcome;
use anyhow::{Context, Result};
use clap::ValueEnum;

/// What is measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Section {
    /// The cost of a call above the cost of a row
    Call,
    /// The cost of a UUID, beside those that Postgres makes
    Uuid,
    /// The cost of a call of a named generator
    Generators,
    /// Ids a second out of one session
    Stream,
    /// `select f()` with durable commits
    Select,
    /// What keeping the high-water mark ahead costs calls
    Reserve,
    /// One tag used by 32 sessions: once adapted, and in its first two seconds
    Segment,
    /// Ids of one shard, out of one session
    Shard,
    /// Requests of nodes that a registry serves
    Registry,
    /// Numbers of keys of each kind, beside a counter by hand and nextval
    Series,
    /// Single-row inserts of 1, 8 and 32 sessions
    Insert,
    /// INSERT ... SELECT of a million rows
    Bulk,
    /// COPY of a million rows
    Copy,
    /// Planning a statement, with and without the library
    Plan,
    /// Numbers of bound sequences, and what these sequences add to other statements
    Bound,
    /// Views, slots and audits at 100,000 tags and ten million ids
    Scale,
    /// The size of the primary key's index after 10-row inserts
    Index,
}

impl Section {
    /// The heading of the section.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Call => "Cost of a call",
            Self::Uuid => "Cost of a UUID",
            Self::Generators => "Cost of a named generator",
            Self::Stream => "Ids out of one session",
            Self::Select => "Calls with durable commits",
            Self::Reserve => "Reserving time ahead",
            Self::Segment => "One tag, 32 sessions",
            Self::Shard => "Ids of one shard",
            Self::Registry => "Requests of nodes",
            Self::Series => "Numbers of a series",
            Self::Insert => "Single-row inserts",
            Self::Bulk => "Bulk insert",
            Self::Copy => "COPY",
            Self::Plan => "Planning",
            Self::Bound => "Bound sequences",
            Self::Scale => "Many tags and many ids",
            Self::Index => "Size of the primary key's index",
        }
    }

    /// Measures the section.
    pub fn measure(self, effort: Effort) -> Result<Outcome> {
        let outcome = match self {
            Self::Call => call::measure(effort),
            Self::Uuid => uuid::measure(effort),
            Self::Generators => generators::measure(effort),
            Self::Stream => stream::measure(effort),
            Self::Select => select::measure(effort),
            Self::Reserve => reserve::measure(effort),
            Self::Segment => segment::measure(effort),
            Self::Shard => shard::measure(effort),
            Self::Registry => registry::measure(effort),
            Self::Series => series::measure(effort),
            Self::Insert => insert::measure(effort),
            Self::Bulk => fill::insert(effort),
            Self::Copy => fill::copy(effort),
            Self::Plan => plan::measure(effort),
            Self::Bound => bound::measure(effort),
            Self::Scale => scale::measure(effort),
            Self::Index => index::measure(effort),
        };
        outcome.with_context(|| format!("could not measure: {}", self.title()))
    }
}
