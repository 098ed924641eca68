//! The protocol of servers and a registry: one request, one response, as JSON.
//!
//! The registry serves a request in one transaction of its own and responds when that is durable. A response that is lost costs
//! little: reserved ids become a gap, and the token of a lease is known to the server beforehand.
//!
//! Neither side trusts the other: see [`accept`](crate::registry::accept).

mod bounded;

pub use bounded::{
    MAX_BYTES, MAX_EXCEPT, MAX_LEASE, MAX_REGISTRIES, MAX_ROWS, MAX_TEXT_CHARS, MAX_TIMEOUT, MAX_WANTS,
    PAGE_BYTES, PAGE_ROWS, cut, said,
};

use crate::clock::UnixMicros;
use crate::error::Explain;
use crate::guard::{Guard, holds};
use crate::registry::lease::{Choice, Holder, Policy, Preferred};
use crate::sequence::reservation::{Demand, Outcome, Reached, Share, Unfit};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// The form of requests and responses. A registry refuses others.
pub const VERSION: u32 = 1;

/// A registry: its tables, and their timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryName {
    /// Made of the cluster, the database and the extension, so a restored dump of this registry has another one.
    pub identity: String,
    /// Its timeline, which grows with each promotion.
    pub timeline: u32,
}

impl RegistryName {
    /// Checks that this is the registry that was seen before, as it was or after a promotion.
    pub fn check(&self, seen: &Self) -> Result<(), Stranger> {
        if self.identity != seen.identity && holds(Guard::Identity) {
            Err(Stranger::Another)
        } else if self.timeline < seen.timeline && holds(Guard::Timeline) {
            Err(Stranger::Former { timeline: self.timeline, seen: seen.timeline })
        } else {
            Ok(())
        }
    }
}

/// Reason why a registry is not the one that was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Stranger {
    /// It is another one, or was restored from a dump.
    #[error("it is another registry than before, or was restored from a dump")]
    Another,
    /// It is the former primary of one that was promoted since.
    #[error("it is on timeline {timeline}, a former primary: timeline {seen} was seen before")]
    Former {
        /// Its timeline.
        timeline: u32,
        /// The latest that was seen.
        seen: u32,
    },
}

/// A request as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// The registry that is meant; None where any will do.
    pub registry: Option<RegistryName>,
    /// The time that the registry waits for locked rows: less than the node waits for the response.
    pub timeout: Duration,
    /// The request itself.
    pub ask: RequestBody,
}

/// A request, of all kinds.
#[derive(Debug, Serialize, Deserialize)]
pub enum RequestBody {
    /// Tell your identity and release.
    Introduce,
    /// List your tags, as many as a response takes.
    Tags {
        /// Only those after this one.
        after: Option<String>,
    },
    /// Take these tags over: create those that you lack, and raise those that are behind.
    HandOver {
        /// Their rows.
        #[serde(deserialize_with = "bounded::rows")]
        rows: Vec<Box<RawValue>>,
        /// The tags of which the node has received ids from this registry. If the registry's row of one is lower, or gone,
        /// the registry was set back, as by a restore: then it takes no tag over.
        #[serde(default, deserialize_with = "bounded::rows")]
        received: Vec<ReceivedTag>,
        /// The share of the registry, where there are several.
        share: Option<Share>,
    },
    /// Reserve ids of these tags.
    Reserve(#[serde(deserialize_with = "bounded::wants")] Vec<ReserveRequest>),
    /// Reserve numbers of keys of a dense series: nodes of 0.2 ask it.
    ReserveNumbers(Box<RawValue>),
    /// Lease me a worker id.
    Lease(Box<LeaseRequest>),
    /// Move the expiry of my lease on.
    Renew {
        /// The worker id.
        worker: u32,
        /// The token of its row.
        token: i64,
        /// The row from now on.
        entry: Entry,
    },
    /// Take my worker id back.
    Release {
        /// The datacenter.
        datacenter: u32,
        /// The worker id.
        worker: u32,
        /// The token of its row.
        token: i64,
        /// The instant from which it is free.
        from: UnixMicros,
    },
}

/// A tag that ids were received of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTag {
    /// The tag.
    pub tag: String,
    /// The period and the highest id.
    pub reached: Reached,
}

/// A request for ids of a tag.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveRequest {
    /// The tag.
    pub tag: String,
    /// True if a missing one is to be made.
    pub create: bool,
    /// Number of ids, and their terms.
    #[serde(rename = "wish")]
    pub demand: Demand,
}

/// The row of a worker id, as its holder writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The datacenter.
    pub datacenter: u32,
    /// The token by which the row is ours from now on.
    pub token: i64,
    /// The time from now, by the registry's clock, in which we may issue.
    pub duration: Duration,
    /// Our clock.
    pub now: UnixMicros,
    /// The time of our last id.
    pub last: Option<UnixMicros>,
    /// The server's name, for people.
    pub holder: Holder,
}

/// A request for a worker id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// The row to write.
    pub entry: Entry,
    /// The policy of the choice.
    pub policy: Policy,
    /// The token of the lease that there is.
    pub token: Option<i64>,
    /// Worker ids that can't be used now, even if they are free.
    #[serde(deserialize_with = "bounded::exceptions")]
    pub except: Vec<u32>,
    /// Number of worker ids, from 0 on: those of the layout, or fewer where the server issues in another one that has no room
    /// for all of them.
    pub capacity: u32,
    /// The place where the search begins; None: where the registry has it.
    pub preferred: Option<Preferred>,
    /// The limit of the difference between clocks.
    pub max_clock_skew: Duration,
    /// A lease that has not ended, of another registry that was in this one's place.
    pub former: Option<Former>,
    /// Worker ids that the registry's own server uses without a row in the table; the registry fills this in.
    #[serde(skip)]
    pub taken: Vec<u32>,
    /// The longest time that leases of a former registry may last: that of this registry's own, which fills this in.
    #[serde(skip)]
    pub longest: Duration,
}

/// A lease of a former registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// The worker id.
    pub worker: u32,
    /// Ids before this instant may be issued under it.
    pub expiry: UnixMicros,
}

/// The outcome of a search for a worker id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Leased {
    /// One was taken.
    Taken {
        /// The choice.
        choice: Choice,
        /// The instant before which it may be used.
        expiry: UnixMicros,
    },
    /// Another server was faster.
    Missed,
    /// None can be had.
    None(LeaseError),
}

/// Reason why there is no worker id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, Explain)]
#[error("{message}")]
#[explain(NotReady, detail = "{}", format!("{detail} {holders}").trim_end(), hint = "{hint}")]
#[explain(for_others = (!holders.is_empty()).then(|| (message.clone(), detail.clone())))]
pub struct LeaseError {
    /// The message.
    pub message: String,
    /// The figures.
    pub detail: String,
    /// The way out.
    pub hint: String,
    /// The holders of the worker ids, only for users that may see other servers; empty where they do not matter.
    #[serde(default)]
    pub holders: String,
}

impl LeaseError {
    /// One of a server that has none yet.
    pub fn yet(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let message = "this server has no worker id yet".to_owned();
        Self { message, detail: detail.into(), hint: hint.into(), holders: String::new() }
    }

    /// The same as another error.
    pub fn of(error: &(impl Explain + ?Sized)) -> Self {
        let (detail, hint) = (error.detail().unwrap_or_default(), error.hint().unwrap_or_default());
        Self { message: error.to_string(), detail, hint, holders: String::new() }
    }
}

/// A response as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// The registry that responds.
    pub registry: RegistryName,
    /// Its clock.
    pub clock: UnixMicros,
    /// The response itself.
    pub said: ResponseBody,
}

/// A response, of all kinds.
#[derive(Debug, Serialize, Deserialize)]
pub enum ResponseBody {
    /// The registry's release of the extension.
    Introduced {
        /// As in the catalog.
        version: String,
    },
    /// Tags in their order; none where there are no more.
    Tags(#[serde(deserialize_with = "bounded::rows")] Vec<Box<RawValue>>),
    /// The tags were taken over, but for the first one that is not fit for this registry, if any.
    HandedOver(Option<(String, Unfit)>),
    /// The outcome for each tag.
    Reserved(#[serde(deserialize_with = "bounded::outcomes")] Vec<Outcome>),
    /// There is no such series.
    ReservedNumbers(NoSeries),
    /// The outcome of the search.
    Leased(Leased),
    /// The expiry; None where the row has another token.
    Renewed(Option<UnixMicros>),
    /// The worker id was taken back.
    Released,
    /// It is not the registry that is meant.
    Stranger(Stranger),
    /// It speaks another version than the request.
    Version(u32),
}

/// The response to nodes of 0.2 that ask for numbers of a dense series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoSeries {
    /// The registry counts none.
    Unknown,
}

impl RequestBody {
    /// Returns whether it raises tags, or lists them all: administrators of nodes send it, and workers never.
    pub fn takes_over(&self) -> bool {
        matches!(self, Self::Tags { .. } | Self::HandOver { .. })
    }

    /// Returns whether it may be one of several in a transaction, which the node ends: a node hands all of its tags
    /// over, or none.
    pub fn is_part(&self) -> bool {
        matches!(self, Self::HandOver { .. })
    }
}

impl Request {
    /// As text.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| ascii(&json))
    }

    /// Reads one; None where it is of another version.
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
    /// As text.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| ascii(&json))
    }

    /// Reads one.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// JSON whose other letters are escaped: databases in any encoding can pass it on.
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
