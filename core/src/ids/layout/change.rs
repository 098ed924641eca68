//! A change of the layout: the instant from which ids of the new layout are greater than all ids of the old layout.
//!
//! The ticks are the highest bits of an id. The ids that a layout can issue at an instant therefore lie between a lower
//! and an upper bound, for all nodes and sequence numbers. Each bound is a step function of time, with one step per tick.
//! This module compares these bounds.

use super::bits::Layout;
use super::field::Field;
use crate::clock::{UnixMicros, YEAR_MICROS, micros};
use crate::error::Explain;
use crate::ids::position::{NodeBits, Position, Tick};
use std::time::Duration;

/// The result of checking a change of the layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutChange {
    /// The instant from which ids of the new layout are greater than all ids of the old layout. The ids of the old
    /// layout include the ids already issued or reserved, and the ids that servers may still issue until this instant.
    /// None if the new layout ends before this instant.
    pub above_from: Option<UnixMicros>,
    /// True if `above_from` is the instant of the check.
    pub ready: bool,
    /// The last instant at which servers may issue ids of the old layout. These ids are still below all ids of the new
    /// layout that are issued from `above_from` on. The maximum of [`UnixMicros`] if there is no such limit; None if
    /// `above_from` is None.
    pub old_until: Option<UnixMicros>,
    /// The number of years until the new layout ends.
    pub years: f64,
    /// The last instant of the new layout.
    pub last: UnixMicros,
}

/// The ids of the old layout that servers may have issued so far.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    /// A position above all positions that this server issued or reserved.
    pub high_water_mark: Position,
    /// The largest time by which any server's ids may be ahead of this server's clock: the drift plus the difference between
    /// clocks.
    pub ahead: Duration,
}

/// Checks a change from one layout to another at `now`.
pub fn check(old: &Layout, new: &Layout, past: Past, now: UnixMicros) -> LayoutChange {
    let ahead = micros(past.ahead);
    let above_from =
        if old == new { Some(now) } else { above_from(old, new, past.high_water_mark, ahead, now) };
    let old_until = above_from.map(|from| {
        if old == new { UnixMicros(i64::MAX) } else { old_until(old, least_id(new, from), ahead) }
    });
    #[allow(clippy::cast_precision_loss, reason = "years")]
    let years = new.last_instant().since(now).as_micros() as f64 / YEAR_MICROS as f64;
    LayoutChange { above_from, ready: above_from == Some(now), old_until, years, last: new.last_instant() }
}

/// Returns the first position of the new layout whose id, like the ids of all later positions, is greater than the ids
/// of all nodes at positions of the old layout below `high_water_mark`. Returns None if the new layout has no such
/// position.
pub fn first_above(old: &Layout, new: &Layout, high_water_mark: Position) -> Option<Position> {
    let tick = Tick(id_below(old, high_water_mark).map_or(0, |id| (id >> new.tick_shift()) + 1));
    (tick.0 <= new.max(Field::Ticks)).then(|| new.first_of(tick))
}

/// Returns the largest id of any node at a position below a high-water mark.
fn id_below(layout: &Layout, high_water_mark: Position) -> Option<u64> {
    let last = Position(high_water_mark.min(layout.end_position()).0.checked_sub(1)?);
    let all_nodes = layout.largest_id() >> layout.widths().ticks >> layout.sequence_bits();
    let node_bits = NodeBits(all_nodes << layout.node_shift());
    Some(layout.id(last, node_bits))
}

/// Returns the smallest id that a layout may issue at an instant or later.
fn least_id(layout: &Layout, at: UnixMicros) -> u64 {
    layout.tick_of(layout.position_at(at)).0 << layout.tick_shift()
}

/// Returns the largest id that a layout may issue up to an instant.
fn greatest_id(layout: &Layout, at: UnixMicros) -> Option<u64> {
    id_below(layout, layout.position_after(at))
}

fn above_from(
    old: &Layout,
    new: &Layout,
    high_water_mark: Position,
    ahead: u64,
    now: UnixMicros,
) -> Option<UnixMicros> {
    // The first tick of the new layout that is not in the past, and whose ids are greater than the ids already issued.
    let first = new.tick_of(first_above(old, new, high_water_mark)?).max(tick_from(new, now)?);
    let at_first = new.instant(first).max(now);
    let growth = Growth::of(old, new, ahead);
    let is_above =
        greatest_id(old, at_first.plus_micros(ahead)).is_none_or(|id| id < least_id(new, at_first));
    if is_above && (at_first == now || growth.faster < 0) {
        return Some(at_first);
    }
    // The change has to wait until the new layout's ids overtake the old layout's ids, or until the old layout ends.
    let ended = Tick((old.largest_id() >> new.tick_shift()) + 1);
    let tick = growth.overtakes().map_or(ended, |tick| tick.min(ended)).max(first);
    (tick.0 <= new.max(Field::Ticks)).then(|| new.instant(tick).max(now))
}

/// Returns the tick of an instant; the first tick if the instant is before the epoch. Returns None after the last tick.
fn tick_from(layout: &Layout, at: UnixMicros) -> Option<Tick> {
    if at < layout.epoch() { Some(Tick(0)) } else { layout.tick(at).ok() }
}

/// The growth of two layouts' ids, as linear functions of the new layout's tick number.
///
/// In tick k, the ids of the new layout begin at `k << n`. `(x / u + 1) << o` is above all ids of the old layout until
/// the end of tick k. n is the tick shift of the new layout. o and u are the tick shift and the unit of the old layout. x
/// is the time from the old epoch to the end of tick k, plus `ahead`.
struct Growth {
    /// The distance by which the new layout's ids catch up in each tick, multiplied by u.
    faster: i128,
    /// The distance by which the new layout's ids are behind in tick 0, multiplied by u. None if the product overflows.
    behind: Option<i128>,
}

impl Growth {
    fn of(old: &Layout, new: &Layout, ahead: u64) -> Self {
        let [old_unit, new_unit] = [old.unit(), new.unit()].map(i128::from);
        let (old_step, new_step) = (1_i128 << old.tick_shift(), 1_i128 << new.tick_shift());
        let since = i128::from(new.epoch().0) - i128::from(old.epoch().0) + i128::from(ahead);
        Self {
            faster: new_step * old_unit - old_step * new_unit,
            behind: (since + new_unit + old_unit).checked_mul(old_step),
        }
    }

    /// Returns the first tick of the new layout from which the new layout's ids stay above the old layout's ids.
    /// Returns None if there is no such tick.
    fn overtakes(&self) -> Option<Tick> {
        let behind = self.behind?;
        match self.faster {
            0 if behind <= 0 => Some(Tick(0)),
            1.. => u64::try_from((behind.max(0) + self.faster - 1) / self.faster).ok().map(Tick),
            _ => None,
        }
    }
}

/// Returns the last instant up to which all ids of a layout are below `id`. Ids may be ahead of the clock by `ahead`.
fn old_until(old: &Layout, id: u64, ahead: u64) -> UnixMicros {
    // All ids of ticks below this number are lower than `id`.
    let ticks = id >> old.tick_shift();
    if ticks > old.max(Field::Ticks) {
        return UnixMicros(i64::MAX);
    }
    UnixMicros(old.instant(Tick(ticks)).0.saturating_sub_unsigned(ahead).saturating_sub(1))
}

/// The reason why a layout is not changed.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady)]
pub enum ChangeError {
    #[error("ids of layout \"{new}\" would not yet be above those of layout \"{old}\"")]
    #[explain(
        detail = "They will be above the old ids from {above_from} on.",
        hint = "Change the layout after that time, or use a layout with larger ids: with an earlier epoch, a shorter unit, or more bits \
                beside the ticks."
    )]
    Overlap { old: String, new: String, above_from: UnixMicros },
    #[error("ids of layout \"{new}\" would never be above those of layout \"{old}\"")]
    #[explain(detail = "The new layout ends before its ids are above those of the old one.")]
    #[explain(hint = "Use a layout with more bits, or an earlier epoch.")]
    Never { old: String, new: String },
}

impl LayoutChange {
    /// Returns an error if the change is not ready.
    pub fn allow(&self, old: &Layout, new: &Layout) -> Result<(), ChangeError> {
        let [old, new] = [old, new].map(ToString::to_string);
        match self.above_from {
            _ if self.ready => Ok(()),
            Some(above_from) => Err(ChangeError::Overlap { old, new, above_from }),
            None => Err(ChangeError::Never { old, new }),
        }
    }
}
