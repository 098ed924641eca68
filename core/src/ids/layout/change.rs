//! From one layout to another: from when on all ids of the new one are above all of the old one.
//!
//! An id's ticks are its highest bits. So the ids that a layout has at an instant lie within bounds that no node and no sequence
//! can leave, and each bound is a line in time, broken into the layout's ticks. That is all that is compared here.

use super::bits::Layout;
use super::field::Field;
use crate::clock::{UnixMicros, YEAR_MICROS, micros};
use crate::error::Explain;
use crate::ids::position::{NodeBits, Position, Tick};
use std::time::Duration;

/// The outcome of a change of the layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutChange {
    /// From this instant on ids of the new layout are above all of the old one that were given or reserved before, or may be
    /// given by then. None: the new layout ends before it comes to that.
    pub above_from: Option<UnixMicros>,
    /// True if that is now.
    pub ready: bool,
    /// As long as servers give ids of the old layout, up to and including this instant, they are below all of the new one from
    /// `above_from` on; [`UnixMicros`]'s last where they always are.
    pub old_until: Option<UnixMicros>,
    /// Number of years the new layout has from now on.
    pub years: f64,
    /// The new layout's last instant.
    pub last: UnixMicros,
}

/// The known ids of the old layout.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    /// The position below which they are, of those that this server gave or reserved.
    pub high_water_mark: Position,
    /// The most by which ids of any server may be ahead of this server's clock: their drift, and what their clocks differ.
    pub ahead: Duration,
}

/// Returns what a change from one layout to another comes to, at `now`.
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

/// The first position of the new layout that is safe after the old one: its ids, and those of all later positions, are
/// above the ids of every node at positions of the old layout below `high_water_mark`. None: there is no such position.
pub fn first_above(old: &Layout, new: &Layout, high_water_mark: Position) -> Option<Position> {
    let tick = Tick(id_below(old, high_water_mark).map_or(0, |id| (id >> new.tick_shift()) + 1));
    (tick.0 <= new.max(Field::Ticks)).then(|| new.first_of(tick))
}

/// The largest id of any node below a mark.
fn id_below(layout: &Layout, high_water_mark: Position) -> Option<u64> {
    let last = Position(high_water_mark.min(layout.end_position()).0.checked_sub(1)?);
    let all_nodes = layout.largest_id() >> layout.widths().ticks >> layout.sequence_bits();
    let node_bits = NodeBits(all_nodes << layout.node_shift());
    Some(layout.id(last, node_bits))
}

/// The smallest id that a layout may give at an instant or after it.
fn least_id(layout: &Layout, at: UnixMicros) -> u64 {
    layout.tick_of(layout.position_at(at)).0 << layout.tick_shift()
}

/// The largest id that a layout may give up to an instant.
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
    // The first tick of the new layout that may give ids at all, and above what was given here.
    let first = new.tick_of(first_above(old, new, high_water_mark)?).max(tick_from(new, now)?);
    let at_first = new.instant(first).max(now);
    let growth = Growth::of(old, new, ahead);
    let is_above =
        greatest_id(old, at_first.plus_micros(ahead)).is_none_or(|id| id < least_id(new, at_first));
    if is_above && (at_first == now || growth.faster < 0) {
        return Some(at_first);
    }
    // Later only: where the new layout's ids grow as fast, or when the old layout has no more.
    let ended = Tick((old.largest_id() >> new.tick_shift()) + 1);
    let tick = growth.overtakes().map_or(ended, |tick| tick.min(ended)).max(first);
    (tick.0 <= new.max(Field::Ticks)).then(|| new.instant(tick).max(now))
}

/// The tick of an instant, the first where it is before the layout's epoch. None after its last.
fn tick_from(layout: &Layout, at: UnixMicros) -> Option<Tick> {
    if at < layout.epoch() { Some(Tick(0)) } else { layout.tick(at).ok() }
}

/// The growth of two layouts' ids, as lines over the new one's ticks.
///
/// In tick k the new layout's ids begin at k << n. What the old layout gives meanwhile ends below (x / u + 1) << o, where u is
/// its unit, and x the time from its epoch to the end of tick k and `ahead` beyond.
struct Growth {
    /// The gain of the new layout on the old one in each tick: times u.
    faster: i128,
    /// The distance behind in tick 0: times u.
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

    /// The tick of the new layout from which on all of its ticks are above what the old one gives meanwhile; None where that
    /// does not come.
    fn overtakes(&self) -> Option<Tick> {
        let behind = self.behind?;
        match self.faster {
            0 if behind <= 0 => Some(Tick(0)),
            1.. => u64::try_from((behind.max(0) + self.faster - 1) / self.faster).ok().map(Tick),
            _ => None,
        }
    }
}

/// The last instant up to which a layout's ids are below one, if they are up to `ahead` ahead of it.
fn old_until(old: &Layout, id: u64, ahead: u64) -> UnixMicros {
    // The ticks whose ids are all below it.
    let ticks = id >> old.tick_shift();
    if ticks > old.max(Field::Ticks) {
        return UnixMicros(i64::MAX);
    }
    UnixMicros(old.instant(Tick(ticks)).0.saturating_sub_unsigned(ahead).saturating_sub(1))
}

/// Reason why a layout is not changed.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady)]
pub enum ChangeError {
    #[error("ids of layout \"{new}\" would not be above those of \"{old}\" now")]
    #[explain(
        detail = "They are from {above_from} on.",
        hint = "Change it then, or take a layout whose ids are larger: an earlier epoch, a shorter unit, or more bits \
                beside the ticks."
    )]
    Overlap { old: String, new: String, above_from: UnixMicros },
    #[error("ids of layout \"{new}\" are never above those of \"{old}\"")]
    #[explain(detail = "The new layout ends before that.")]
    #[explain(hint = "Take a layout with more bits, or an earlier epoch.")]
    Never { old: String, new: String },
}

impl LayoutChange {
    /// Refuses a change that is not ready.
    pub fn allow(&self, old: &Layout, new: &Layout) -> Result<(), ChangeError> {
        let [old, new] = [old, new].map(ToString::to_string);
        match self.above_from {
            _ if self.ready => Ok(()),
            Some(above_from) => Err(ChangeError::Overlap { old, new, above_from }),
            None => Err(ChangeError::Never { old, new }),
        }
    }
}
