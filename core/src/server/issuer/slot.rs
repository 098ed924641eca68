//! Slots for the layouts of named generators, beside the server's own: each has a generator, and serves one layout at a
//! time.
//!
//! The layout changes under the state lock, while the slot's generator is closed, and the slot's *generation* with it.
//! A session knows the generation in which the slot was its layout's. It reads it before and after it takes: where it is
//! still the same, what was taken is of that layout; else it is thrown away, and the session asks for a slot again.

use crate::clock::UnixMicros;
use crate::generator::snowflake::Generator;
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::sync::{AtomicU64, Ordering};

/// The default of `snowflake_ids.max_generators`.
pub const DEFAULT_SLOTS: i32 = 256;

/// A slot in shared memory.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C, align(64)))]
pub struct GeneratorSlot {
    /// Hands out positions of the layout that has the slot.
    pub generator: Generator,
    /// Changes with the layout, while the generator is closed; 0: the slot was never used.
    pub slot_generation: AtomicU64,
}

/// The use of a slot.
#[derive(Debug, Default)]
pub struct Occupancy {
    /// The layout that has it; None: it is free.
    pub layout: Option<Layout>,
    /// The database that took it, by its oid. Others may use the layout, too.
    pub(super) database: u32,
    /// The node whose term its generator has begun; None while it is closed.
    pub node: Option<Node>,
    /// The time at which it got the slot, in microseconds since the machine's start.
    pub(super) assigned_at: u64,
    /// The next position when that was last seen to have changed, and the time of that.
    pub(super) seen: (Position, u64),
}

/// The data that the state lock guards.
#[derive(Debug, Default)]
pub struct Issuing {
    /// The node whose term the generator of the server's own layout has begun; None while it is closed.
    pub node: Option<Node>,
    /// True if the state was taken up since the server's start.
    pub opened: bool,
    /// True if the server was asked for a safe position to read from since its start.
    pub(super) has_readers: bool,
    /// The uses of the slots; those never used stand at the end.
    pub slots: &'static mut [Occupancy],
    /// An instant above all that was issued at slots whose layouts have gone, since the server's start.
    pub(super) gone: Option<UnixMicros>,
}

impl Issuing {
    /// Returns what a server with so many slots begins with.
    pub fn new(slots: &'static mut [Occupancy]) -> Self {
        Self { slots, ..Self::default() }
    }

    /// The slots that have been used since the server's start.
    pub(super) fn used(&self) -> impl Iterator<Item = &Occupancy> {
        self.slots.iter().take_while(|slot| slot.layout.is_some())
    }

    /// The slot that a layout has.
    pub fn slot_of(&self, layout: &Layout) -> Option<usize> {
        self.used().position(|slot| slot.layout == Some(*layout))
    }

    /// The node whose term has begun at a slot; None: where ids of the server's own layout come from.
    pub(super) fn node_at(&self, slot: Option<usize>) -> Option<Node> {
        match slot {
            None => self.node,
            Some(slot) => self.slots[slot].node,
        }
    }

    pub(super) fn node_at_mut(&mut self, slot: Option<usize>) -> &mut Option<Node> {
        match slot {
            None => &mut self.node,
            Some(slot) => &mut self.slots[slot].node,
        }
    }
}

/// The source of a layout's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotRef {
    /// It is the server's own layout.
    Own,
    /// A slot, as long as this is its generation.
    Slot {
        /// Its index among the slots.
        index: usize,
        /// Its generation.
        slot_generation: u64,
    },
}

/// A source of positions for a session.
pub trait PositionSource {
    /// Their layout.
    fn layout(&self) -> &Layout;
    /// Returns what hands them out.
    fn generator(&self) -> &Generator;
    /// Returns whether that still hands out positions of the layout.
    fn is_held(&self) -> bool;
}

/// A layout, with the generator that serves it.
#[derive(Clone, Copy, Debug)]
pub struct LayoutGenerator<'a> {
    layout: &'a Layout,
    generator: &'a Generator,
    /// The slot's generation, and what it is to be.
    slot: Option<(&'a AtomicU64, u64)>,
}

impl<'a> LayoutGenerator<'a> {
    /// The server's own layout, whose place never changes.
    pub(super) fn own(generator: &'a Generator, layout: &'a Layout) -> Self {
        Self { layout, generator, slot: None }
    }

    /// A layout at a slot.
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
    /// Returns whether a layout has it, or had.
    pub(super) fn is_used(&self) -> bool {
        self.slot_generation.load(Ordering::Acquire) > 0
    }

    /// Gives it to another layout, while its generator is closed.
    pub fn reuse(&self) {
        self.generator.forget();
        self.slot_generation.fetch_add(1, Ordering::AcqRel);
    }
}
