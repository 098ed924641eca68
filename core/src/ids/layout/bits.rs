//! A layout: the widths and the order of the fields, the unit (the length of a tick) and the epoch.

use super::field::{Field, LayoutError, Order, RANGES, TickError, Widths};
use crate::clock::UnixMicros;
use crate::ids::position::{Issued, NodeBits, Position, Tick};
use std::fmt;
use strength_reduce::StrengthReducedU64;

/// A valid layout. Equal layouts give equal ids for equal fields.
#[derive(Clone, Copy)]
pub struct Layout {
    pub(super) widths: Widths,
    pub(super) order: Order,
    pub(super) unit: StrengthReducedU64,
    pub(super) epoch: UnixMicros,
}

impl Layout {
    /// The number of bits of an id, without the sign bit.
    pub const BITS: u32 = 63;
    /// The longest unit: one day, in microseconds.
    pub const MAX_UNIT_MICROS: u64 = 86_400_000_000;

    /// Checks and returns a layout. `unit` is the length of a tick in microseconds, and `epoch` is the beginning of
    /// tick 0.
    pub fn new(widths: Widths, order: Order, unit: u64, epoch: UnixMicros) -> Result<Self, LayoutError> {
        for (field, min, max) in RANGES {
            let width = widths.of(field);
            if width < min || width > max {
                return Err(LayoutError::Width { field, width: width.into(), min, max });
            }
        }
        if widths.sum() > Self::BITS {
            return Err(LayoutError::Sum { sum: widths.sum() });
        }
        check_unit(unit)?;
        check_epoch(epoch)?;
        let layout = Self { widths, order, unit: StrengthReducedU64::new(unit), epoch };
        layout.end().ok_or(LayoutError::TooLong { ticks: widths.ticks })?;
        Ok(layout)
    }

    /// Returns the widths of the fields.
    pub const fn widths(&self) -> &Widths {
        &self.widths
    }

    /// Returns the order of the fields.
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Returns the length of a tick, in microseconds.
    pub fn unit(&self) -> u64 {
        self.unit.get()
    }

    /// Returns the beginning of tick 0.
    pub const fn epoch(&self) -> UnixMicros {
        self.epoch
    }

    /// Returns the largest value of a field.
    pub const fn max(&self, field: Field) -> u64 {
        self.widths.max(field)
    }

    /// Returns the last microsecond of the last tick.
    pub fn last_instant(&self) -> UnixMicros {
        self.end().unwrap_or(UnixMicros(i64::MAX))
    }

    /// Returns the largest id.
    pub fn largest_id(&self) -> u64 {
        (1 << self.widths.sum()) - 1
    }

    /// Returns the position after the layout's last position.
    pub const fn end_position(&self) -> Position {
        Position(1 << (self.widths.ticks + self.widths.sequence))
    }

    /// Returns the first position of an instant's tick. Instants before the epoch give the first position, and instants
    /// after the last tick give the end position.
    pub fn position_at(&self, at: UnixMicros) -> Position {
        match self.tick(at) {
            Ok(tick) => self.first_of(tick),
            Err(TickError::BeforeEpoch { .. }) => Position::ZERO,
            Err(TickError::AfterLast { .. }) => self.end_position(),
        }
    }

    /// Returns the first position after an instant's tick.
    pub fn position_after(&self, at: UnixMicros) -> Position {
        match self.tick(at) {
            Ok(tick) => self.first_of(Tick(tick.0 + 1)),
            Err(_) => self.position_at(at),
        }
    }

    /// Returns the first position of the first tick that begins at or after an instant.
    pub fn position_from(&self, at: UnixMicros) -> Position {
        if at <= self.epoch { Position::ZERO } else { self.position_after(UnixMicros(at.0 - 1)) }
    }

    /// Returns the first instant at which the ticks of all positions below this position have ended.
    pub fn instant_above(&self, position: Position) -> UnixMicros {
        let instant = self.instant_of(position);
        if position > self.first_of(self.tick_of(position)) {
            instant.plus_micros(self.unit())
        } else {
            instant
        }
    }

    /// Returns the beginning of a position's tick.
    pub fn instant_of(&self, position: Position) -> UnixMicros {
        self.instant(self.tick_of(position))
    }

    /// Returns the first position of the first tick that begins at or after a position.
    pub fn first_from(&self, position: Position) -> Position {
        let tick = self.tick_of(position);
        if position > self.first_of(tick) { self.first_of(Tick(tick.0 + 1)) } else { position }
    }

    /// Returns the first position of a tick.
    #[inline]
    pub const fn first_of(&self, tick: Tick) -> Position {
        Position(tick.0 << self.sequence_bits())
    }

    /// Returns the tick of a position.
    #[inline]
    pub const fn tick_of(&self, position: Position) -> Tick {
        Tick(position.0 >> self.sequence_bits())
    }

    fn end(&self) -> Option<UnixMicros> {
        let ticks = 1_u64.checked_shl(self.widths.ticks.into())?;
        let length = i64::try_from(ticks.checked_mul(self.unit())?).ok()?;
        self.epoch.0.checked_add(length - 1).map(UnixMicros)
    }

    /// Returns the tick of an instant.
    #[inline]
    pub fn tick(&self, at: UnixMicros) -> Result<Tick, TickError> {
        // For an instant before the epoch, the subtraction wraps to 2^63 microseconds or more. Every layout is shorter
        // than 2^63 microseconds, so the tick is rejected.
        let since = at.0.wrapping_sub(self.epoch.0).cast_unsigned();
        // Most layouts have ticks of a millisecond, and a division by a constant is faster.
        let tick = if self.unit.get() == 1_000 { since / 1_000 } else { since / self.unit };
        if tick <= self.max(Field::Ticks) { Ok(Tick(tick)) } else { Err(self.no_tick(at)) }
    }

    #[cold]
    fn no_tick(&self, at: UnixMicros) -> TickError {
        if at < self.epoch {
            TickError::BeforeEpoch { at, epoch: self.epoch }
        } else {
            TickError::AfterLast { at, last: self.last_instant() }
        }
    }

    /// Returns the beginning of a tick. A tick after the layout's last tick counts as the last tick.
    pub fn instant(&self, tick: Tick) -> UnixMicros {
        let tick = tick.0.min(self.max(Field::Ticks));
        UnixMicros(self.epoch.0.wrapping_add_unsigned(tick.wrapping_mul(self.unit())))
    }

    /// Returns the id of a position and a node. A node's ids are greater for greater positions.
    #[inline]
    pub const fn id(&self, position: Position, node_bits: NodeBits) -> u64 {
        let tick = self.tick_of(position).0;
        let sequence = position.0 & self.max(Field::Sequence);
        tick << self.tick_shift() | sequence << self.sequence_shift() | node_bits.0
    }

    /// Returns the id of an issued position, as a bigint of SQL.
    #[inline]
    pub const fn id_of(&self, issued: Issued) -> i64 {
        self.id(issued.position, issued.node_bits).cast_signed()
    }

    /// Returns the number of bits below a field.
    pub const fn shift(&self, field: Field) -> u8 {
        match field {
            Field::Ticks => self.tick_shift(),
            Field::Datacenter => self.node_shift() + self.widths.worker_id + self.widths.rollback,
            Field::Worker => self.node_shift() + self.widths.rollback,
            Field::Rollback => self.node_shift(),
            Field::Sequence => self.sequence_shift(),
        }
    }

    pub(crate) const fn sequence_bits(&self) -> u8 {
        self.widths.sequence
    }

    /// Returns the width of a node: the widths of datacenter, worker and rollback together.
    pub(crate) const fn node_bits(&self) -> u8 {
        self.widths.datacenter + self.widths.worker_id + self.widths.rollback
    }

    pub(crate) const fn node_shift(&self) -> u8 {
        match self.order {
            Order::SequenceLast => self.widths.sequence,
            Order::SequenceFirst => 0,
        }
    }

    pub(crate) const fn sequence_shift(&self) -> u8 {
        match self.order {
            Order::SequenceLast => 0,
            Order::SequenceFirst => self.node_bits(),
        }
    }

    pub(crate) const fn tick_shift(&self) -> u8 {
        self.node_bits() + self.widths.sequence
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.widths == other.widths
            && self.order == other.order
            && self.unit() == other.unit()
            && self.epoch == other.epoch
    }
}

impl Eq for Layout {}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}

pub(super) fn check_unit(unit: u64) -> Result<(), LayoutError> {
    const SECOND: u64 = 1_000_000;
    let whole = unit > 0 && (SECOND.is_multiple_of(unit) || unit.is_multiple_of(SECOND));
    if whole && unit <= Layout::MAX_UNIT_MICROS {
        Ok(())
    } else {
        Err(LayoutError::Unit { unit: format!("{unit}us") })
    }
}

pub(super) fn check_epoch(epoch: UnixMicros) -> Result<(), LayoutError> {
    let reason = if epoch.0 < 0 {
        "It lies before 1970"
    } else if epoch.0 % 1_000 != 0 {
        "It is finer than a millisecond"
    } else if jiff::Timestamp::from_microsecond(epoch.0).is_err() {
        "It lies after the year 9999"
    } else {
        return Ok(());
    };
    Err(LayoutError::Epoch { epoch: epoch.to_string(), reason })
}
