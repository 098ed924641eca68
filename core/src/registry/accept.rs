//! Checks of requests and responses, and the decision to serve a request. Neither side trusts the other. Any role with the
//! right to call the registry may send a request. Any server at the registry's address may send a response.

use crate::clock::UnixMicros;
use crate::error::{Explain, excerpt};
use crate::ids::layout::{Field, Layout};
use crate::registry::forks::Forks;
use crate::registry::wire::{
    Entry, LeaseRequest, Leased, MAX_REGISTRIES, MAX_TEXT_CHARS, MAX_TIMEOUT, RegistryName, Request,
    RequestBody, ReserveRequest, Response, ResponseBody, VERSION, cut, said,
};
use crate::server::lease::{Holder, LeaseError, capacity};
use crate::tag::definition::check_tag;
use crate::tag::reservation::{Demand, Share};
use std::time::Duration;

/// The largest time value of a setting.
const MAX_TIME: Duration = Duration::from_secs(i32::MAX.cast_unsigned() as u64);
/// The largest value of an `integer` column.
const MOST: u32 = i32::MAX.cast_unsigned();

/// The reason why a registry does not serve a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument, hint = "Install the same version of the extension on both servers.")]
pub enum RequestError {
    /// The request cannot be parsed.
    #[error("could not parse the request")]
    #[explain(detail = "{}.", excerpt(_0))]
    Garbled(String),
    /// A value of the request is out of bounds.
    #[error("the request is out of range")]
    #[explain(detail = "Its {field} must be {bound}.")]
    OutOfBounds {
        /// The name of the value.
        field: &'static str,
        /// The allowed range, in words.
        bound: &'static str,
    },
}

fn bound(holds: bool, field: &'static str, bound: &'static str) -> Result<(), RequestError> {
    if holds { Ok(()) } else { Err(RequestError::OutOfBounds { field, bound }) }
}

fn short(text: &str, field: &'static str) -> Result<(), RequestError> {
    // A character has at most four bytes, so a text of more than `4 * MAX_TEXT_CHARS` bytes is too long, and its
    // characters need not be counted.
    let holds = text.len() <= 4 * MAX_TEXT_CHARS && text.chars().count() <= MAX_TEXT_CHARS;
    bound(holds, field, "255 characters or less")
}

/// Checks that both `timestamptz` and the calendar can represent an instant.
fn instant(at: UnixMicros, field: &'static str) -> Result<(), RequestError> {
    const YEAR_1: i64 = -62_135_596_800_000_000;
    const YEAR_9999: i64 = 253_370_764_800_000_000;
    bound((YEAR_1..YEAR_9999).contains(&at.0), field, "between the years 1 and 9998")
}

fn time(time: Duration, field: &'static str) -> Result<(), RequestError> {
    bound(time <= MAX_TIME, field, "68 years or less")
}

impl Request {
    /// Parses a request and checks its bounds. Returns None if the request has another version of the protocol.
    pub fn accept(text: &str) -> Result<Option<Self>, RequestError> {
        let request = Self::from_text(text).map_err(|error| RequestError::Garbled(error.to_string()))?;
        request.map(|request| request.check().map(|()| request)).transpose()
    }

    /// Checks that all values are within bounds. The lengths of lists were checked when the lists were read.
    pub fn check(&self) -> Result<(), RequestError> {
        if let Some(RegistryName { identity, .. }) = &self.registry {
            short(identity, "registry")?;
        }
        bound(self.timeout <= MAX_TIMEOUT, "timeout", "15 minutes or less")?;
        self.ask.check()
    }
}

impl RequestBody {
    fn check(&self) -> Result<(), RequestError> {
        match self {
            Self::Introduce => Ok(()),
            Self::Tags { after } => after.as_deref().map_or(Ok(()), is_tag),
            Self::HandOver { received, share, .. } => {
                received.iter().try_for_each(|received| is_tag(&received.tag))?;
                share.map_or(Ok(()), is_share)
            }
            Self::Reserve(wants) => wants.iter().try_for_each(ReserveRequest::check),
            Self::Lease(demand) => demand.check(),
            Self::Renew { worker_id, entry, .. } => {
                let layout = entry.check()?;
                bound(
                    u64::from(*worker_id) <= layout.max(Field::Worker),
                    "worker id",
                    "one that the layout has",
                )
            }
            Self::Release { datacenter, worker_id, from, .. } => {
                bound((*datacenter).max(*worker_id) <= MOST, "worker id", "one that a layout has")?;
                instant(*from, "release")
            }
        }
    }
}

fn is_tag(tag: &str) -> Result<(), RequestError> {
    let holds = tag.len() <= crate::tag::definition::MAX_TAG_BYTES && check_tag(tag.chars().count()).is_ok();
    bound(holds, "tag", "1 to 128 characters")
}

fn is_share(share: Share) -> Result<(), RequestError> {
    let Share { index, of } = share;
    bound((2..=MAX_REGISTRIES).contains(&of) && index < of, "share", "one of 2 to 1000 registries")
}

impl ReserveRequest {
    fn check(&self) -> Result<(), RequestError> {
        is_tag(&self.tag)?;
        // `saved_range` and `received` need no check: the registry only compares these values with the tag's row.
        // `TagRow::admit` checks `high_water_mark`.
        let Demand { pace, lasted, target, prefetch, share, .. } = &self.demand;
        bound(pace.is_sane(), "pace", "1000000000 ids or less")?;
        lasted.map_or(Ok(()), |lasted| time(lasted, "time since the last reservation"))?;
        time(*target, "target")?;
        bound(*prefetch <= 100, "prefetch", "100 percent or less")?;
        share.map_or(Ok(()), is_share)
    }
}

impl Entry {
    /// Checks the values, and returns the layout that the entry names.
    fn check(&self) -> Result<Layout, RequestError> {
        let Holder { timeline, host, port, directory, layout, .. } = &self.holder;
        for (text, field) in [(host, "host"), (directory, "data directory"), (layout, "layout")] {
            short(text, field)?;
        }
        bound(*timeline <= MOST, "timeline", "one that a server can be on")?;
        bound(port.is_none_or(|port| (0..=65_535).contains(&port)), "port", "0 to 65535")?;
        time(self.duration, "duration")?;
        instant(self.now, "clock")?;
        self.last.map_or(Ok(()), |last| instant(last, "last id"))?;
        let bad = |_| RequestError::OutOfBounds { field: "layout", bound: "a layout of ids" };
        let layout: Layout = layout.parse().map_err(bad)?;
        let datacenter = u64::from(self.datacenter);
        bound(datacenter <= layout.max(Field::Datacenter), "datacenter id", "one that the layout has")?;
        Ok(layout)
    }
}

impl LeaseRequest {
    fn check(&self) -> Result<(), RequestError> {
        let layout = self.entry.check()?;
        // The requested capacity may be lower than the number of worker ids in this layout, because another layout of
        // the server may have fewer worker ids.
        let some = 1..=capacity(&layout);
        bound(some.contains(&self.capacity), "number of worker ids", "no more than the layout has")?;
        bound(self.max_clock_skew <= MAX_TIME, "max_clock_skew", "68 years or less")
    }
}

impl Response {
    /// Parses a response, and cleans its texts for display.
    ///
    /// # Errors
    /// The reason why the response is not valid, as a text that is safe to display.
    pub fn accept(text: &str) -> Result<Self, String> {
        let mut answer = Self::from_text(text).map_err(|error| excerpt(&error.to_string()))?;
        let RegistryName { identity, left, .. } = &mut answer.registry;
        *identity = cut(identity, MAX_TEXT_CHARS);
        left.clear();
        match &mut answer.said {
            ResponseBody::Introduced { version, layout } => {
                (*version, *layout) = (excerpt(version), excerpt(layout));
            }
            ResponseBody::HandedOver(Some((tag, _))) => *tag = cut(tag, MAX_TEXT_CHARS),
            ResponseBody::Leased(Leased::None(LeaseError { message, detail, hint, holders })) => {
                for text in [message, detail, hint, holders] {
                    *text = said(text);
                }
            }
            _ => {}
        }
        Ok(answer)
    }
}

/// The decision about a request.
#[derive(Debug)]
pub enum Admission {
    /// The registry first records these forks, and then serves the request.
    Serve(Vec<i64>, RequestBody),
    /// The registry sends this response, and does nothing else.
    Say(ResponseBody),
    /// The registry refuses the request, because the sender runs it inside a transaction block. The changes that the
    /// response reports would not be committed yet, and row locks would last until the block ends.
    InBlock,
    /// The registry refuses the request, because the sender's role may not raise or list tags.
    TakesOver,
}

/// Decides about a request. `request` is None if the request has another version of the protocol. `this` is the
/// registry's own name, and `forks` are the forks that it has recorded. `may_take_over` is true if the sender's role may
/// raise and list tags. `in_block` is true if the sender runs the request inside a transaction block.
pub fn admit(
    request: Option<Request>,
    this: &RegistryName,
    forks: &Forks,
    may_take_over: bool,
    in_block: bool,
) -> Admission {
    let Some(Request { registry, ask, .. }) = request else {
        return Admission::Say(ResponseBody::Version(VERSION));
    };
    if in_block && !ask.is_part() {
        Admission::InBlock
    } else if ask.takes_over() && !may_take_over {
        Admission::TakesOver
    } else {
        let unknown = |seen: &RegistryName| this.check(seen).and_then(|()| forks.unknown(seen));
        match registry.as_ref().map_or(Ok(Vec::new()), unknown) {
            Ok(unknown) => Admission::Serve(unknown, ask),
            Err(stranger) => Admission::Say(ResponseBody::Stranger(stranger)),
        }
    }
}
