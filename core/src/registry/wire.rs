//! The protocol between servers and a registry: one request, one response, both in JSON.
//!
//! The registry serves a request in a transaction of its own, and responds after the commit. A lost response costs little:
//! reserved ids become a gap, and the server already knows the lease token that it sent.
//!
//! Neither side trusts the other; see [`accept`](crate::registry::accept).

mod bounded;

pub use bounded::{
    MAX_BYTES, MAX_EXCEPT, MAX_FORKS, MAX_LEASE, MAX_REGISTRIES, MAX_ROWS, MAX_TEXT_CHARS, MAX_TIMEOUT,
    MAX_WANTS, PAGE_BYTES, PAGE_ROWS, cut, said,
};

use crate::clock::UnixMicros;
use crate::error::Explain;
use crate::guard::{Guard, holds};
use crate::server::lease::{Choice, Holder, LeaseError, Policy, Preferred};
use crate::tag::reservation::{Demand, Outcome, Reached, Share, Unfit};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// The version of the protocol. A registry refuses other versions.
pub const VERSION: u32 = 1;

/// The name of a registry: its identity, its timeline and its fork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryName {
    /// The identity, derived from the database cluster, the database and the extension. A database restored from a dump has
    /// another identity.
    pub identity: String,
    /// The timeline of the registry's server. Each promotion increases the timeline.
    pub timeline: u32,
    /// The [fork](crate::registry::forks): a random number that the registry's server drew at its promotion. None before
    /// the first promotion.
    pub fork: Option<i64>,
    /// The forks that a node saw before this fork. Empty in a response.
    #[serde(default, deserialize_with = "bounded::at_most::<_, _, MAX_FORKS>")]
    pub left: Vec<i64>,
}

impl RegistryName {
    /// Checks that this is the registry that was seen before. The registry's standby may have been promoted since.
    pub fn check(&self, seen: &Self) -> Result<(), Stranger> {
        if self.identity != seen.identity && holds(Guard::Identity) {
            Err(Stranger::Another)
        } else if self.timeline < seen.timeline && holds(Guard::Timeline) {
            Err(Stranger::Former { timeline: self.timeline, seen: seen.timeline })
        } else if self.fork.is_some_and(|fork| seen.left.contains(&fork)) && holds(Guard::ForkLeft) {
            Err(Stranger::Left { timeline: self.timeline })
        } else {
            Ok(())
        }
    }

    /// Returns all forks that were seen.
    pub fn forks(&self) -> impl Iterator<Item = i64> {
        self.left.iter().copied().chain(self.fork)
    }

    /// Returns the name to remember after a response of this registry; None if the response tells nothing new.
    #[must_use]
    pub fn after(&self, answered: &Self) -> Option<Self> {
        let is_known = (answered.timeline, answered.fork) == (self.timeline, self.fork);
        if is_known || answered.check(self).is_err() {
            return None;
        }
        let mut left = self.left.clone();
        left.extend(self.fork);
        left.drain(..left.len().saturating_sub(MAX_FORKS));
        Some(Self { left, ..answered.clone() })
    }
}

/// The reason why a registry is not the registry that was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, Explain)]
#[explain(NotReady)]
pub enum Stranger {
    /// The registry has another identity.
    #[error("it is another registry than before, or was restored from a dump")]
    #[explain(hint = "If this change is intended, raise the tags on the new registry above all ids in use \
                      with snowflake_ids.segment_raise; then call snowflake_ids.use_registry here again.")]
    Another,
    /// The registry is a former primary: a later timeline was seen before.
    #[error("it is a former primary: it is on timeline {timeline}, but timeline {seen} was seen before")]
    #[explain(
        hint = "Stop the former primary, and set the host of the foreign server to the promoted server."
    )]
    Former {
        /// The registry's timeline.
        timeline: u32,
        /// The latest timeline that was seen.
        seen: u32,
    },
    /// The registry is a former primary: another server that was promoted to the same timeline was seen after it.
    #[error("it is a former primary: after it, another server on timeline {timeline} was seen")]
    #[explain(
        hint = "Stop the former primary, and set the host of the foreign server to the promoted server."
    )]
    Left {
        /// The registry's timeline.
        timeline: u32,
    },
    /// Nodes have named more forks than the registry records.
    #[error("it lacks more than 64 promotions that its nodes saw")]
    #[explain(
        hint = "Raise the tags on the registry above all ids in use with snowflake_ids.segment_raise; then call \
                      snowflake_ids.use_local_registry and snowflake_ids.use_registry here."
    )]
    Forks,
}

/// A request as it is sent: common fields and the body.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The version of the protocol: [`VERSION`].
    pub version: u32,
    /// The expected registry. None if any registry may answer.
    pub registry: Option<RegistryName>,
    /// The time limit of waits for locked rows. This limit is shorter than the node's time limit for the response.
    pub timeout: Duration,
    /// The request itself.
    pub ask: RequestBody,
}

/// The kinds of requests.
#[derive(Debug, Serialize, Deserialize)]
pub enum RequestBody {
    /// Asks for the registry's name, version and layout.
    Introduce,
    /// Asks for one page of the registry's tags.
    Tags {
        /// The registry sends only tags after this tag; None to begin with the first tag.
        after: Option<String>,
    },
    /// Hands tags over. The registry creates missing tags, and raises tags whose row is lower.
    HandOver {
        /// The rows of the tags.
        #[serde(deserialize_with = "bounded::at_most::<_, _, MAX_ROWS>")]
        rows: Vec<Box<RawValue>>,
        /// The highest ids that the node received from this registry. If the registry's row of a tag is below the
        /// received id, or missing, the registry was restored from a backup. The registry then takes over no tag.
        #[serde(deserialize_with = "bounded::at_most::<_, _, MAX_ROWS>")]
        received: Vec<ReceivedTag>,
        /// The registry's share of each tag's ids; None if the node uses only this registry.
        share: Option<Share>,
    },
    /// Reserves ids of these tags.
    Reserve(#[serde(deserialize_with = "bounded::at_most::<_, _, MAX_WANTS>")] Vec<ReserveRequest>),
    /// Leases a worker id.
    Lease(Box<LeaseRequest>),
    /// Renews the lease of a worker id.
    Renew {
        /// The worker id.
        worker_id: u32,
        /// The present token of the row.
        token: i64,
        /// The new content of the row.
        entry: Entry,
    },
    /// Gives a worker id back.
    Release {
        /// The datacenter.
        datacenter: u32,
        /// The worker id.
        worker_id: u32,
        /// The token of the row.
        token: i64,
        /// The instant from which another server may use the worker id.
        from: UnixMicros,
    },
}

/// The highest id of a tag that a node received from a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTag {
    /// The tag.
    pub tag: String,
    /// The period of the highest received id, and this id.
    pub reached: Reached,
}

/// A request for ids of a tag.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveRequest {
    /// The tag.
    pub tag: String,
    /// True if the registry shall create a missing tag.
    pub create: bool,
    /// The demand: its size and its conditions.
    pub demand: Demand,
}

/// The content of a worker id's row that the holder of the worker id determines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The datacenter.
    pub datacenter: u32,
    /// The new lease token.
    pub token: i64,
    /// The length of the lease from now, by the registry's clock.
    pub duration: Duration,
    /// The holder's clock.
    pub now: UnixMicros,
    /// The time of the holder's last id.
    pub last: Option<UnixMicros>,
    /// A description of the holder.
    pub holder: Holder,
}

/// A request for a worker id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// The row to write.
    pub entry: Entry,
    /// The policy for the choice.
    pub policy: Policy,
    /// The token of the present lease.
    pub token: Option<i64>,
    /// Worker ids that the server cannot use now, even if they are free.
    #[serde(deserialize_with = "bounded::at_most::<_, _, MAX_EXCEPT>")]
    pub except: Vec<u32>,
    /// The number of worker ids that may be chosen. This number is lower than the layout's own number if another layout
    /// of the server has fewer worker ids.
    pub capacity: u32,
    /// The worker ids to try first; None if the registry decides.
    pub preferred: Option<Preferred>,
    /// The largest allowed difference between clocks.
    pub max_clock_skew: Duration,
    /// A lease from the registry that this registry replaced, if the lease is still valid.
    pub former: Option<FormerLease>,
}

impl LeaseRequest {
    /// Returns the tokens of rows that belong to the server: the token of its present lease, and the new token.
    pub fn tokens(&self) -> [Option<i64>; 2] {
        [self.token, Some(self.entry.token)]
    }
}

/// A lease of a previous registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerLease {
    /// The worker id.
    pub worker_id: u32,
    /// The end of the lease.
    pub expiry: UnixMicros,
}

/// The outcome of a request for a worker id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Leased {
    /// The registry leased a worker id.
    Taken {
        /// The chosen worker id, with its previous row if there was one.
        choice: Choice,
        /// The end of the lease.
        expiry: UnixMicros,
    },
    /// Other servers changed the rows in each attempt.
    Missed,
    /// No worker id is available.
    None(LeaseError),
}

/// A response as it is sent: common fields and the body.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// The name of the registry.
    pub registry: RegistryName,
    /// The registry's clock.
    pub clock: UnixMicros,
    /// The response itself.
    pub said: ResponseBody,
}

/// The kinds of responses.
#[derive(Debug, Serialize, Deserialize)]
pub enum ResponseBody {
    /// The registry's version of the extension, and the layout of its ids.
    Introduced {
        /// The version in the catalog `pg_extension`.
        version: String,
        /// The layout, written as a `Layout` is.
        layout: String,
    },
    /// A page of tags, ordered by tag. The list is empty after the last page.
    Tags(#[serde(deserialize_with = "bounded::at_most::<_, _, MAX_ROWS>")] Vec<Box<RawValue>>),
    /// The first tag that the registry could not take over, with the reason; None if the registry took over all tags.
    HandedOver(Option<(String, Unfit)>),
    /// The outcome for each tag.
    Reserved(#[serde(deserialize_with = "bounded::outcomes")] Vec<Outcome>),
    /// The outcome of the request for a worker id.
    Leased(Leased),
    /// The new end of the lease. None if the row has another token.
    Renewed(Option<UnixMicros>),
    /// The worker id was given back.
    Released,
    /// The server is not the expected registry.
    Stranger(Stranger),
    /// The registry's version of the protocol, which differs from the request's version.
    Version(u32),
}

impl RequestBody {
    /// Returns whether the request raises tags or lists all tags. Only administrators send such a request.
    pub fn takes_over(&self) -> bool {
        matches!(self, Self::Tags { .. } | Self::HandOver { .. })
    }

    /// Returns whether the request may run inside a transaction block. A hand-over may need several requests, and hands
    /// over all tags or no tag.
    pub fn is_part(&self) -> bool {
        matches!(self, Self::HandOver { .. })
    }
}

impl Request {
    /// Returns the request as text.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| ascii(&json))
    }

    /// Parses a request. Returns None if the request has another version.
    pub fn from_text(text: &str) -> serde_json::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct Form {
            version: u32,
        }
        let form: Form = serde_json::from_str(text)?;
        if form.version == VERSION { serde_json::from_str(text).map(Some) } else { Ok(None) }
    }
}

impl Response {
    /// Returns the response as text.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| ascii(&json))
    }

    /// Parses a response.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// Escapes characters beyond ASCII, so that databases with any encoding can pass the JSON on.
fn ascii(json: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            escaped.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string can't fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}
