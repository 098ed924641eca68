//! The protocol of servers and a registry: one question, one answer, as JSON.
//!
//! A server asks; the registry does it in one transaction of its own and answers when that is durable. An answer that is
//! lost costs no more than what it told of: reserved ids become a gap, and the token of a lease is known to the server
//! beforehand.
//!
//! Neither is trusted: any login with the role of nodes may have written a question ([`Request::accept`]), and any server
//! that is where the registry should be an answer ([`Response::accept`]).

mod bounded;
mod limits;

pub use bounded::{cut, said};
pub use limits::{
    MAX_BYTES, MAX_EXCEPT, MAX_LEASE, MAX_REGISTRIES, MAX_ROWS, MAX_TEXT_CHARS, MAX_TIMEOUT, MAX_WANTS,
    PAGE_BYTES, PAGE_ROWS,
};

use crate::clock::UnixMicros;
use crate::error::{Explain, Kind};
use crate::guard::{Guard, holds};
use crate::registry::lease::{Choice, Holder, Policy, Preferred};
use crate::sequence::reservation::{Outcome, Reached, Share, Unfit, Wish};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;
use std::time::Duration;

/// The form of questions and answers. A registry refuses others.
pub const VERSION: u32 = 1;

/// A registry: which tables, and on which timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    /// Tells it from others, and from what a dump of it was restored into: cluster, database and extension.
    pub identity: String,
    /// Its timeline: grows with each promotion.
    pub timeline: u32,
}

impl Registry {
    /// Returns whether this is the registry that was seen before, as it was or after a promotion.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stranger {
    /// It is another one, or was restored from a dump.
    Another,
    /// It is the former primary of one that was promoted since.
    Former {
        /// Its timeline.
        timeline: u32,
        /// The latest that was seen.
        seen: u32,
    },
}

/// A question.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// Which registry is meant; None where any will do.
    pub registry: Option<Registry>,
    /// Time that rows that are locked are waited for: less than the answer is.
    pub timeout: Duration,
    /// What is asked.
    pub ask: RequestBody,
}

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
pub enum RequestBody {
    /// Which registry is this?
    Introduce,
    /// Which tags are there? As many as an answer takes.
    Tags {
        /// Only those after this one.
        after: Option<String>,
    },
    /// Have these tags, and let none of them be behind.
    HandOver {
        /// Their rows.
        #[serde(deserialize_with = "bounded::rows")]
        rows: Vec<Box<RawValue>>,
        /// How far tags were received from this registry: where its own row is behind that, or gone, it was set back, and
        /// none is had.
        #[serde(default, deserialize_with = "bounded::rows")]
        received: Vec<ReceivedTag>,
        /// Which one of several registries is asked.
        share: Option<Share>,
    },
    /// Reserve ids of these tags.
    Reserve(#[serde(deserialize_with = "bounded::wants")] Vec<ReserveRequest>),
    /// Reserve numbers of keys of a dense series: nodes of 0.2 ask it.
    ReserveNumbers(Box<RawValue>),
    /// Give me a worker id.
    Lease(Box<LeaseRequest>),
    /// Move the expiry of my lease on.
    Renew {
        /// The worker id,
        worker: u32,
        /// the token that its row has,
        token: i64,
        /// and what it is to say from now on.
        entry: Entry,
    },
    /// Another may have this worker id.
    Release {
        /// The datacenter,
        datacenter: u32,
        /// the worker id,
        worker: u32,
        /// its token,
        token: i64,
        /// and the instant from which it is free.
        from: UnixMicros,
    },
}

/// A tag that ids were received of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedTag {
    /// The tag.
    pub tag: String,
    /// How far.
    pub reached: Reached,
}

/// What is wanted of a tag.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveRequest {
    /// The tag.
    pub tag: String,
    /// True if it is to be made if there is none.
    pub create: bool,
    /// Number of ids, and their terms.
    pub wish: Wish,
}

/// What the holder of a worker id writes into its row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The datacenter.
    pub datacenter: u32,
    /// By what the row is known as ours from now on.
    pub token: i64,
    /// For how long from now, by the registry's clock, we may issue.
    pub duration: Duration,
    /// Our clock.
    pub now: UnixMicros,
    /// The time of our last id.
    pub last: Option<UnixMicros>,
    /// The server's name, for people.
    pub holder: Holder,
}

/// What there is to go by when a worker id is looked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// What to write.
    pub entry: Entry,
    /// By which policy.
    pub policy: Policy,
    /// The token of the lease that there is.
    pub token: Option<i64>,
    /// Worker ids that can't be used now, even if they are free.
    #[serde(deserialize_with = "bounded::exceptions")]
    pub except: Vec<u32>,
    /// Number of worker ids there are, from 0 on: those that the layout has, or fewer where the server issues in
    /// another one that has no room for all of them.
    pub capacity: u32,
    /// Where to begin to look for one; None: where the registry has it.
    pub preferred: Option<Preferred>,
    /// How far clocks may differ.
    pub max_clock_skew: Duration,
    /// A lease that has not ended, of another registry that was in this one's place.
    #[serde(default)]
    pub former: Option<Former>,
    /// Worker ids that the registry's own server has without a row here. It is that server which knows.
    #[serde(skip)]
    pub taken: Vec<u32>,
    /// Time that leases of a former registry last at most, as this registry's own do.
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

/// What came of looking for a worker id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Leased {
    /// There is one.
    Taken {
        /// How it was taken.
        choice: Choice,
        /// Below which it may be used.
        expiry: UnixMicros,
    },
    /// Another was faster.
    Missed,
    /// There is none to be had.
    None(LeaseError),
}

/// Reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseError {
    /// What is wrong,
    pub message: String,
    /// the figures,
    pub detail: String,
    /// and the way out.
    pub hint: String,
    /// The holders of the worker ids: only for users that may see what other servers there are. Empty where that is no matter.
    #[serde(default)]
    pub holders: String,
}

impl LeaseError {
    /// There is none yet.
    pub fn yet(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let message = "this server has no worker id yet".to_owned();
        Self { message, detail: detail.into(), hint: hint.into(), holders: String::new() }
    }

    /// As another error says it.
    pub fn of(error: &(impl Explain + ?Sized)) -> Self {
        let (detail, hint) = (error.detail().unwrap_or_default(), error.hint().unwrap_or_default());
        Self { message: error.to_string(), detail, hint, holders: String::new() }
    }
}

impl Explain for LeaseError {
    fn kind(&self) -> Kind {
        Kind::NotReady
    }

    fn detail(&self) -> Option<String> {
        Some(format!("{} {}", self.detail, self.holders).trim_end().to_owned())
    }

    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }

    fn for_others(&self) -> Option<(String, String)> {
        (!self.holders.is_empty()).then(|| (self.message.clone(), self.detail.clone()))
    }
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Response {
    /// The registry that answers.
    pub registry: Registry,
    /// Its clock.
    pub clock: UnixMicros,
    /// What it says.
    pub said: ResponseBody,
}

/// What a registry says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ResponseBody {
    /// It is this version of the extension.
    Introduced {
        /// As in the catalog.
        version: String,
    },
    /// It has these tags, in their order; none where there are no more.
    Tags(#[serde(deserialize_with = "bounded::rows")] Vec<Box<RawValue>>),
    /// It has them now; the first that is not fit for this registry, if any.
    HandedOver(Option<(String, Unfit)>),
    /// What came of each.
    Reserved(#[serde(deserialize_with = "bounded::outcomes")] Vec<Outcome>),
    /// There is no such series.
    ReservedNumbers(NoSeries),
    /// What came of it.
    Leased(Leased),
    /// The expiry; None where the row has another token.
    Renewed(Option<UnixMicros>),
    /// It is done.
    Released,
    /// It is not the registry that is meant.
    Stranger(Stranger),
    /// It speaks another version than the question.
    Version(u32),
}

/// What nodes of 0.2 are told that ask for numbers of a dense series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoSeries {
    /// The registry counts none.
    Unknown,
}

impl RequestBody {
    /// Returns whether it moves tags up, or lists them all: what administrators of nodes ask, and workers never.
    pub fn takes_over(&self) -> bool {
        matches!(self, Self::Tags { .. } | Self::HandOver { .. })
    }

    /// Returns whether it may be one of several in a transaction, which the node ends: a node hands all of its tags
    /// over, or none. The answer to another is good when it is given.
    pub fn is_part(&self) -> bool {
        matches!(self, Self::HandOver { .. })
    }
}

impl Request {
    /// As text.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| ascii(&json))
    }

    /// From text; None where it is of another version.
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

    /// From text.
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
