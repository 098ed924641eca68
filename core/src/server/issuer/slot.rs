//! Slots for the layouts of named generators. Each slot has a generator, and serves one layout at a time. The server's
//! own layout needs no slot. A slot changes its layout and its *generation* under the state lock, while the slot's
//! generator is closed. A session discards positions if the slot's generation changed while the session took them.

use crate::clock::UnixMicros;
use crate::generator::snowflake::Generator;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::sync::{AtomicU64, Ordering};

/// The default of `snowflake_ids.max_generators`.
pub const DEFAULT_SLOTS: i32 = 256;

/// A slot in shared memory.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C))]
pub struct GeneratorSlot {
    /// The generator for positions of the slot's layout.
    pub generator: Generator,
    /// A number that grows with each change of the slot's layout, while the generator is closed; 0 if the slot was
    /// never used.
    pub slot_generation: AtomicU64,
}

/// The layout that uses a slot.
#[derive(Debug, Default)]
pub struct Occupancy {
    /// The layout that has the slot; None if the slot is free.
    pub layout: Option<Layout>,
    /// The OID of the database for which the layout got the slot. Other databases may use the layout, too.
    pub(super) database: u32,
    /// The time at which the layout got the slot, in microseconds since the machine's start.
    pub(super) assigned_at: u64,
    /// The generator's next position at the last observed change, and the time of that observation.
    pub(super) seen: (Position, u64),
}

/// The data that the state lock guards.
#[derive(Debug, Default)]
pub struct Issuing {
    /// True if a process has opened the state since the server's start.
    pub opened: bool,
    /// True if a reader has asked for a safe position since the server's start.
    pub(super) has_readers: bool,
    /// The occupancies of the slots. Slots that were never used are at the end.
    pub slots: &'static mut [Occupancy],
    /// An instant after all ids of the layouts that have lost their slots since the server's start; None if no layout
    /// has lost its slot.
    pub(super) gone: Option<UnixMicros>,
}

impl Issuing {
    /// Returns the data as it is at the server's start.
    pub fn new(slots: &'static mut [Occupancy]) -> Self {
        Self { slots, ..Self::default() }
    }

    /// Returns the occupancies of the slots that have been used since the server's start.
    pub(super) fn used(&self) -> impl Iterator<Item = &Occupancy> {
        self.slots.iter().take_while(|slot| slot.layout.is_some())
    }

    /// Returns the index of the layout's slot.
    pub fn slot_of(&self, layout: &Layout) -> Option<usize> {
        self.slot_from(0, usize::MAX, layout)
    }

    /// Returns the index of the layout's slot, if this slot is among the `count` slots that begin with `from`.
    pub fn slot_from(&self, from: usize, count: usize, layout: &Layout) -> Option<usize> {
        let place = self.used().skip(from).take(count).position(|slot| slot.layout == Some(*layout))?;
        Some(from + place)
    }
}

/// The source of a layout's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotRef {
    /// The server's own layout.
    Own,
    /// A slot, valid while the slot has this generation.
    Slot {
        /// The slot's index.
        index: usize,
        /// The slot's generation.
        slot_generation: u64,
    },
}

/// A source of positions for a session.
pub trait PositionSource {
    /// Returns the positions' layout.
    fn layout(&self) -> &Layout;
    /// Returns the generator that hands out the positions.
    fn generator(&self) -> &Generator;
    /// Returns true if the generator still serves the layout.
    fn is_held(&self) -> bool;
}

/// A layout, with the generator that serves it.
#[derive(Clone, Copy, Debug)]
pub struct LayoutGenerator<'a> {
    layout: &'a Layout,
    generator: &'a Generator,
    /// The slot's current generation, and the generation in which the slot serves the layout; None for the server's own
    /// layout.
    slot: Option<(&'a AtomicU64, u64)>,
}

impl<'a> LayoutGenerator<'a> {
    pub(super) fn own(generator: &'a Generator, layout: &'a Layout) -> Self {
        Self { layout, generator, slot: None }
    }

    /// Returns a layout that a slot serves.
    #[inline]
    pub fn at(slot: &'a GeneratorSlot, slot_generation: u64, layout: &'a Layout) -> Self {
        Self { layout, generator: &slot.generator, slot: Some((&slot.slot_generation, slot_generation)) }
    }
}

impl PositionSource for LayoutGenerator<'_> {
    #[inline]
    fn layout(&self) -> &Layout {
        self.layout
    }

    #[inline]
    fn generator(&self) -> &Generator {
        self.generator
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.slot.is_none_or(|(slot_generation, mine)| slot_generation.load(Ordering::Acquire) == mine)
    }
}

impl GeneratorSlot {
    /// Returns true if a layout has or had the slot.
    pub(super) fn is_used(&self) -> bool {
        self.slot_generation.load(Ordering::Acquire) > 0
    }

    /// Prepares the slot for another layout. The generator must be closed.
    pub fn reuse(&self) {
        self.generator.forget();
        self.slot_generation.fetch_add(1, Ordering::AcqRel);
    }
}
