//! The reservation of a tag's next ids: the demand of a server, and the outcome for the tag's row.
//!
//! The row is in the server's own tables, or in the tables of a registry that many servers share. In both cases the
//! reserved ids belong to the server once the changed row is durable.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::tag::definition::{Definition, Exhausted, MAX_STEP, Range};
use crate::tag::segment::{Period, Supply};
use crate::tag::serial::{NumberFormat, Reset};
use crate::tag::step::Pace;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A tag's row, while it is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRow {
    /// The properties of the tag's ids, for the current period.
    pub definition: Definition,
    /// The current period.
    pub period: Period,
    /// The number format.
    pub format: String,
    /// A random number that changes with each write of the row. Two states of the row never share a version, even after a
    /// restore.
    pub version: i64,
    /// A random number that changes when the tag is created, or moved back to ids that were handed out.
    pub tag_generation: i64,
}

/// The inputs of the next reservation, other than the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// A saved range, to be used in place of new ids.
    pub saved_range: Option<SavedRange>,
    /// The pace (step and multiplier) of the last reservation.
    pub pace: Pace,
    /// The time since the last reservation.
    pub lasted: Option<Duration>,
    /// The time that a segment should last.
    pub target: Duration,
    /// True if a caller had to wait lately.
    pub waited_lately: bool,
    /// The used part of a segment, in percent, at which the next segment is requested.
    pub prefetch: u8,
    /// The highest id that the server has handed out and that the row does not record.
    pub high_water_mark: Option<Reached>,
    /// The highest id that the server has received from this registry. A row whose highest id is lower was restored
    /// from an older state.
    pub received: Option<Reached>,
    /// This registry's share, if several registries serve the tag; else None.
    pub share: Option<Share>,
    /// The largest number of ids to reserve, for a tag in a slow start.
    pub most: Option<u32>,
    /// The server's clock, if the row is in a registry. The registry refuses a row whose period is far from this clock.
    pub clock: Option<UnixMicros>,
}

/// A tag's high-water mark: the first day of the period, in days since 1970, and the highest id. The day is 0 for a tag
/// without periods.
pub type Reached = (i32, i64);

/// The highest id that a transaction handed out from a row that the transaction itself has changed. The change may be
/// rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HighWaterMark {
    /// The generation of the tag to which the id belongs. The mark is invalid in other generations.
    pub tag_generation: i64,
    /// The first day of the period, as in [`Reached`].
    pub day: i32,
    /// The id.
    pub id: i64,
}

impl HighWaterMark {
    /// Returns the high-water mark without its generation.
    pub fn reached(&self) -> Reached {
        (self.day, self.id)
    }

    /// Returns the higher of this mark and the recorded mark. A recorded mark of another generation is invalid, and
    /// dropped.
    #[must_use]
    pub fn beside(self, recorded: Option<Self>) -> Self {
        let is_higher = |recorded: &Self| {
            recorded.tag_generation == self.tag_generation && recorded.reached() >= self.reached()
        };
        recorded.filter(is_higher).unwrap_or(self)
    }
}

/// Returns the number of promotions since a row was last written. At each of them, the row may have lost ids that the
/// previous primary reserved. `here` is this cluster's system identifier and its timeline. A row that another cluster
/// wrote, for example before `pg_upgrade`, counts as written on this cluster's first timeline.
pub fn promotions_since(cluster: Option<i64>, timeline: Option<i32>, here: (i64, i32)) -> u32 {
    const FIRST: i32 = 1;
    let written = if cluster == Some(here.0) { timeline } else { timeline.map(|_| FIRST) };
    written.map_or(0, |written| here.1.saturating_sub(written).max(0).unsigned_abs())
}

/// Returns 1 if this server's tables were copied or put back since a row was written, else 0. Such an event counts as a
/// promotion. The arguments are the numbers of the last events: see `Copied` in the server's state.
pub fn copies_since(written: Option<i64>, here: Option<i64>) -> u32 {
    u32::from(here.is_some() && written != here && holds(Guard::CopySkips))
}

/// A saved range: ids of a tag that were reserved and not handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRange {
    /// The row's version after the last reservation.
    pub version: i64,
    /// The first day of the ids' period; None for a tag without periods.
    pub day: Option<i32>,
    /// The ids.
    #[serde(flatten)]
    pub range: Range,
}

impl SavedRange {
    /// Returns the ids if the row still has the version, the highest id and the properties that the row had after the
    /// reservation of these ids.
    fn if_current(&self, row: &TagRow) -> Option<Range> {
        let Range { first, count, increment } = self.range;
        let same = self.version == row.version
            && self.day == row.period.dated()
            && self.range.last() == row.definition.max_id
            && increment == row.definition.increment
            && row.definition.first_after(first.saturating_sub(1)) == Some(first);
        (same && count > 0).then_some(self.range)
    }
}

/// The share of one of several registries that serve the same tags, as in Tinyid and TDDL. Each registry serves the ids
/// that leave its own remainder when divided by the number of registries. So two registries never serve the same id,
/// although they do not communicate with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The index of the share, from 0.
    pub index: u32,
    /// The number of shares: 2 or more, or 1 for all ids.
    pub of: u32,
}

impl Share {
    /// The share of all ids.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// Returns true if all ids that leave `remainder` when divided by `increment` belong to the share.
    pub fn holds(self, increment: i64, remainder: i64) -> bool {
        let of = i64::from(self.of.max(1));
        increment > 0 && increment % of == 0 && remainder % of == i64::from(self.index)
    }
}

/// The outcome of a demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Ids were reserved. The ids may be handed out once the row is durable.
    Reserved(Reserved),
    /// Another transaction has locked the row.
    Locked,
    /// The tag does not exist.
    Unknown,
    /// The tag has no ids left.
    Exhausted(Exhausted),
    /// The row must not be used.
    Unfit(Unfit),
    /// Another server's answer is invalid, for this reason. The receiver of the answer sets this outcome, which no
    /// server sends.
    #[serde(skip)]
    Garbled(String),
}

/// Reason why a row must not be used. The messages are texts of a DETAIL.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Unfit {
    /// The row's highest id is below an id that was received from the registry, so the registry was restored from an
    /// older state. `later` is true if the received id belongs to a later period.
    #[error("{}", set_back(*received, *max_id, *later))]
    SetBack { received: i64, max_id: i64, later: bool },
    /// The registry's row and this server's tag, which was handed over to the registry, have different periods. `dated`
    /// is true if the row has periods.
    #[error("{}", if *dated {
        "On the registry, the tag starts over each day, month or year; on this server, it does not, or does so at other times."
    } else {
        "On the registry, the tag never starts over; on this server, it does."
    })]
    Period { dated: bool },
    /// The row has periods now and had no periods when ids were received, or had periods then and has no periods now.
    /// Numbers that this server received would be issued again. `dated` is true if the row has periods now.
    #[error("{}", if *dated {
        "The tag now starts over each day, month or year; it did not when ids were received from it before."
    } else {
        "The tag no longer starts over; it did when ids were received from it before."
    })]
    Redated { dated: bool },
    /// The row is gone, although ids of the tag were received from the registry. A new row would give these ids to
    /// other servers.
    #[error("The registry no longer has the tag; ids up to {received} were received from it before.")]
    Dropped { received: i64 },
    /// The server reports ids that are too far above the row to be plausible.
    #[error(
        "This server has handed out ids up to {high_water_mark}, but the registry's row records ids only up to {max_id}. The gap \
         is larger than two segments."
    )]
    HighWaterMark { high_water_mark: i64, max_id: i64 },
    /// The row's period is far from the server's clock. `day` is the first day of the period.
    #[error(
        "The tag's period begins at {}, but the clock of this server shows {clock}.",
        UnixMicros::of_day(*day)
    )]
    Clock { day: i32, clock: UnixMicros },
    /// The row's ids do not belong to this registry's share.
    #[error(
        "The registry is at position {} of {} registries, counted from 0, so its ids must leave remainder {} when divided by \
         {}; the row has increment {increment} and remainder {remainder}.",
        share.index, share.of, share.index, share.of
    )]
    Share { share: Share, increment: i64, remainder: i64 },
}

fn set_back(received: i64, max_id: i64, later: bool) -> String {
    if later {
        format!("Ids of a later period, up to {received}, were received from this registry before.")
    } else {
        format!(
            "Ids up to {received} were received from this registry before, but the registry's row records ids only up to {max_id}."
        )
    }
}

impl Unfit {
    /// Returns the text of a HINT.
    pub fn hint(&self, tag: &str) -> String {
        let tag = tag.replace('\'', "''");
        match self {
            Self::SetBack { .. } => format!(
                "The registry's row was set back, for example by a restore. On the registry, SELECT \
                 snowflake_ids.segment_raise('{tag}', id) with the highest id that any server may have got."
            ),
            Self::Period { .. } => {
                "Use another tag on this server. If no column takes ids from this tag, it can be dropped on this server \
                 or on the registry instead."
                    .to_owned()
            }
            Self::Redated { .. } => format!(
                "If this is intended and numbers may repeat: on this server, DELETE FROM snowflake_ids.received WHERE tag = \
                 '{tag}'. Otherwise use another tag."
            ),
            Self::Dropped { .. } => format!(
                "On the registry, SELECT snowflake_ids.segment_create('{tag}', start => id) with an id above all issued ones. \
                 If the tag was dropped on purpose and numbers may repeat: on this server, DELETE FROM \
                 snowflake_ids.received WHERE tag = '{tag}'."
            ),
            Self::HighWaterMark { high_water_mark, .. } => {
                format!("On the registry, SELECT snowflake_ids.segment_raise('{tag}', {high_water_mark}).")
            }
            Self::Clock { .. } => format!(
                "Correct the clock that is wrong. If the registry's row is in a period that has not begun: on the registry, \
                 SELECT snowflake_ids.segment_set('{tag}', id, true) with the highest id that any server may have got in \
                 the present period."
            ),
            Self::Share { share: Share { index, of }, .. } => format!(
                "On the registry, SELECT snowflake_ids.segment_alter('{tag}', increment => {of}, remainder => {index})."
            ),
        }
    }
}

/// Ids that were reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// The ids, and their period.
    pub supply: Supply,
    /// The pace by which the number of ids was chosen.
    pub pace: Pace,
    /// The number of ids that the row has left.
    pub left: u64,
    /// The row's largest id.
    pub max_value: i64,
    /// The row's version after this reservation.
    pub version: i64,
    /// The number format.
    pub format: String,
}

impl Reserved {
    /// Returns the tag's high-water mark after the reservation of these ids.
    pub fn reached(&self) -> Reached {
        (self.supply.period.day, self.supply.range.last())
    }

    /// Checks that this is a valid answer to a demand. `clock` is the time by the registry's clock, and `here` is the
    /// time by this server's clock. Answers of other servers are not trusted.
    pub fn check(&self, demand: &Demand, clock: UnixMicros, here: UnixMicros) -> Result<(), &'static str> {
        let Supply { range, period, prefetch_at } = self.supply;
        let Range { first, count, increment } = range;
        let sane = 1..=MAX_STEP;
        if !sane.contains(&i64::from(count)) || !sane.contains(&increment) || prefetch_at > count {
            Err("an impossible number of ids")
        } else if first < 0 || !range.is_representable() || range.last() > self.max_value {
            Err("impossible ids")
        } else if !self.pace.is_sane() {
            Err("an impossible pace")
        } else if demand.received.is_some_and(|(day, _)| (day != 0) != period.dated().is_some()) {
            Err("ids of a tag that starts over where it did not before, or the other way round")
        } else if period.until.plus(MIDNIGHT) <= clock
            || period.dated().is_some_and(|_| !is_near(period, here))
        {
            Err("ids of a period that is over, has not begun or is missing")
        } else if !is_format(&self.format, period.dated().is_some()) {
            Err("an impossible format")
        } else if demand.share.is_some_and(|share| !share.holds(increment, first % increment.max(1))) {
            Err("ids of another registry")
        } else if self.repeats(demand) {
            Err("ids that were received before")
        } else {
            Ok(())
        }
    }

    fn repeats(&self, demand: &Demand) -> bool {
        let Supply { range, period, .. } = self.supply;
        let left =
            demand.saved_range.as_ref().is_some_and(|left| left.range == range && left.day == period.dated());
        !left && demand.received.is_some_and(|received| received >= (period.day, range.first))
    }
}

/// The tolerance for an answer that arrives after the end of the ids' period.
const MIDNIGHT: Duration = Duration::from_mins(1);

/// The tolerance for the start and the end of a period, compared with this server's clock. Clocks differ, and days
/// begin at different times in different time zones.
const DAY: Duration = Duration::from_hours(24);

/// Returns true if the period may be the current period, and is not longer than a year.
fn is_near(period: Period, now: UnixMicros) -> bool {
    let begins = UnixMicros::of_day(period.day);
    begins <= now.plus(DAY)
        && now <= period.until.plus(DAY)
        && begins <= period.until
        && period.until.since(begins) <= 367 * DAY
}

/// Returns true if the text is a valid number format for a tag with or without periods.
fn is_format(text: &str, dated: bool) -> bool {
    let resets: &[Option<Reset>] = if dated { &Reset::ALL.map(Some) } else { &[None] };
    !text.chars().any(char::is_control)
        && resets.iter().any(|reset| NumberFormat::parse(text, *reset).is_ok())
}

impl Demand {
    /// Returns the reason why a missing row must not be created: ids of the tag were received from the registry before.
    /// Returns None if no id was received.
    pub fn unfit_to_create(&self) -> Option<Unfit> {
        TagRow::unfit_since(None, self.received?)
    }
}

impl TagRow {
    /// Returns a recorded high-water mark, if it belongs to the row's generation.
    pub fn high_water_mark(&self, recorded: Option<HighWaterMark>) -> Option<Reached> {
        let counts = |high_water_mark: &HighWaterMark| {
            high_water_mark.tag_generation == self.tag_generation || !holds(Guard::HighWaterMarkOfGeneration)
        };
        recorded.filter(counts).map(|high_water_mark| high_water_mark.reached())
    }

    /// Reserves the next ids. The caller then writes the last id and `version` to the row. The ids may be handed out
    /// once that row is durable. `version` is a number that no row ever had as its version.
    pub fn reserve(&self, demand: &Demand, version: i64) -> Outcome {
        if let Some(unfit) = self.unfit_for(demand) {
            return Outcome::Unfit(unfit);
        }
        let definition = self.above(demand.high_water_mark);
        let bounds = definition.bounds();
        let pace = demand.pace.next(bounds, demand.lasted, demand.target, demand.waited_lately);
        let saved_range = demand.saved_range.as_ref().and_then(|saved_range| saved_range.if_current(self));
        // If the high-water mark is above the row, the saved range may have been handed out.
        let saved_range = saved_range
            .filter(|left| definition == self.definition && !self.may_be_out(left, demand.high_water_mark));
        let ids = demand.most.map_or(pace.ids(bounds), |most| pace.ids(bounds).min(most.max(1)));
        let range = match saved_range.map_or_else(|| definition.reserve(ids), Ok) {
            Ok(range) => range,
            Err(exhausted) => return Outcome::Exhausted(exhausted),
        };
        let prefetch_at = Pace::prefetch_at(demand.waited_lately, demand.prefetch, range.count);
        Outcome::Reserved(Reserved {
            supply: Supply { range, period: self.period, prefetch_at },
            pace,
            left: definition.left_after(range.last()),
            max_value: definition.max_value,
            version: if holds(Guard::NewVersion) { version } else { self.version + 1 },
            format: self.format.clone(),
        })
    }

    /// Returns true if a transaction that was rolled back may have handed out some of these ids.
    fn may_be_out(&self, ids: &Range, high_water_mark: Option<Reached>) -> bool {
        high_water_mark.is_some_and(|(day, id)| day == self.period.day && id >= ids.first)
    }

    fn unfit_for(&self, demand: &Demand) -> Option<Unfit> {
        let Definition { increment, remainder, .. } = self.definition;
        if let Some(share) = demand.share.filter(|share| !share.holds(increment, remainder)) {
            return Some(Unfit::Share { share, increment, remainder });
        }
        if let Some((day, clock)) = self.period.dated().zip(demand.clock)
            && !is_near(self.period, clock)
        {
            return Some(Unfit::Clock { day, clock });
        }
        Self::unfit_since(Some(self), demand.received?)
    }

    /// Returns the reason why a tag with these received ids must not be used; None if the tag may be used. `row` is
    /// None if the row is missing.
    pub fn unfit_since(row: Option<&Self>, (day, received): Reached) -> Option<Unfit> {
        let Some(Self { period, definition: Definition { max_id, .. }, .. }) = row else {
            return Some(Unfit::Dropped { received });
        };
        let dated = period.dated().is_some();
        if (day != 0) != dated {
            return Some(Unfit::Redated { dated });
        }
        let behind = (day, received) > (period.day, *max_id);
        behind.then_some(Unfit::SetBack { received, max_id: *max_id, later: day > period.day })
    }

    /// Returns another server's demand, with its high-water mark raised to this server's own mark. A server has at most
    /// two segments of a tag. A mark further above the row is refused, because such a mark would use up ids of all
    /// servers.
    ///
    /// # Errors
    /// [`Unfit::HighWaterMark`].
    pub fn admit(&self, demand: Demand, here: Option<Reached>) -> Result<Demand, Unfit> {
        let of_period =
            |high_water_mark: Option<Reached>| high_water_mark.filter(|(day, _)| *day == self.period.day);
        let (theirs, here) = (of_period(demand.high_water_mark), of_period(here));
        let Definition { max_id, max_step, increment, .. } = self.definition;
        let reach = 2 * i128::from(max_step.clamp(1, MAX_STEP)) * i128::from(increment.clamp(1, MAX_STEP));
        let base = max_id.max(self.definition.start.saturating_sub(1)).max(here.map_or(max_id, |(_, id)| id));
        match theirs {
            Some((_, high_water_mark)) if i128::from(high_water_mark) > i128::from(base) + reach => {
                Err(Unfit::HighWaterMark { high_water_mark, max_id })
            }
            _ => Ok(Demand { high_water_mark: theirs.max(here), ..demand }),
        }
    }

    /// Returns the properties in which ids up to this high-water mark count as reserved.
    pub fn above(&self, high_water_mark: Option<Reached>) -> Definition {
        match high_water_mark {
            Some((day, id)) if day == self.period.day && id > self.definition.max_id => {
                Definition { max_id: id, ..self.definition }
            }
            _ => self.definition,
        }
    }

    /// Returns the next id after `issued`, in this row's period.
    pub fn one_after(&self, issued: Option<Reached>) -> Result<Range, Exhausted> {
        self.above(issued).reserve(1)
    }
}
