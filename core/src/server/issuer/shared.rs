//! The issuer's state in shared memory: plain data that the server places into shared memory.

use super::slot::{GeneratorSlot, LayoutGenerator, PositionSource, SlotRef};
use crate::clock::UnixMicros;
use crate::generator::safe_position::Frontier;
use crate::generator::snowflake::Generator;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::clock_reference::{self, Reading};
use crate::server::state::Identity;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// For how long nobody asks again for a worker id that fits a layout after one was asked for in vain.
const VAIN: Duration = Duration::from_secs(5);

/// Counters since the server's start, and present values, for the view.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct IssuerCounts {
    /// Number of times that the state was written: each a sync.
    pub reservations: AtomicU64,
    /// Those of them that a call did itself.
    pub by_callers: AtomicU64,
    /// Steps forward of the clock.
    pub steps_forward: AtomicU64,
    /// The last of them, in microseconds.
    pub last_step_forward: AtomicU64,
    /// The time by which the clock is ahead without being followed, in microseconds.
    pub clock_ahead: AtomicU64,
    /// The lag of the clock of a registry on another server behind this server's at its last answer, in microseconds.
    pub registry_behind: AtomicI64,
    /// Number of times that another rollback value or worker id was taken because the clock was stepped back.
    pub switches: AtomicU64,
    /// Number of calls for ids that failed: for want of a worker id or of a number of their tag, or by the clock.
    pub failed_calls: AtomicU64,
    /// True if the last attempt to write the state failed.
    pub unwritable: AtomicBool,
    /// The expiry of the lease, in microseconds since 1970; 0 without a lease, or where the server chose its worker id.
    pub expiry: AtomicI64,
    /// The oid of the database by way of which worker ids are leased; 0 without one.
    pub registry: AtomicU64,
    /// True if there is known to be no registry.
    pub alone: AtomicBool,
    /// The oid of the database that is to be the registry; else 0.
    pub moving_to: AtomicU64,
}

impl IssuerCounts {
    /// The expiry of the lease; None without one.
    pub fn expiry(&self) -> Option<UnixMicros> {
        Some(self.expiry.load(Relaxed)).filter(|expiry| *expiry != 0).map(UnixMicros)
    }

    /// The oid of the database by way of which worker ids are leased, if there is one.
    pub fn registry(&self) -> Option<u32> {
        oid(&self.registry)
    }

    /// The oid of the database that is to be the registry, if there is one.
    pub fn moving_to(&self) -> Option<u32> {
        oid(&self.moving_to)
    }
}

fn oid(cell: &AtomicU64) -> Option<u32> {
    u32::try_from(cell.load(Relaxed)).ok().filter(|oid| *oid != 0)
}

/// The generator, and what belongs to it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct IssuerMemory {
    /// Hands out positions of the server's own layout.
    pub generator: Generator,
    /// The highest next position of that generator that readers were told of.
    pub frontier: Frontier,
    /// The server's own layout.
    pub layout: Layout,
    /// The node that is to issue.
    pub identity: Identity,
    /// The clock reference: what the wall clock showed when the machine was started, by the furthest reading that was
    /// believed, which is that of the server's start at first. Far from what every call reads.
    clock_reference: AtomicI64,
    /// The time of the checkpoint that the server started from.
    pub checkpoint: Option<UnixMicros>,
    /// Counters for the view.
    pub counts: IssuerCounts,
    /// Hand out positions of other layouts.
    pub slots: &'static [GeneratorSlot],
    /// The last time that a worker id fitting all layouts was asked for in vain, in microseconds since the machine's start; 0:
    /// never.
    vain: AtomicU64,
}

impl IssuerMemory {
    /// The state of a server that starts from this checkpoint while its clocks show `wall` and `since_boot`.
    pub fn new(
        layout: Layout,
        identity: Identity,
        wall: UnixMicros,
        since_boot: u64,
        checkpoint: Option<UnixMicros>,
    ) -> Self {
        // A clock that shows less than it did at the last checkpoint is not right yet.
        let latest = checkpoint.map_or(wall, |checkpoint| checkpoint.max(wall));
        let shared = Self {
            generator: Generator::new(),
            frontier: Frontier::default(),
            layout,
            identity,
            clock_reference: AtomicI64::new(0),
            checkpoint,
            counts: IssuerCounts::default(),
            slots: &[],
            vain: AtomicU64::new(0),
        };
        shared.set_clock_reference(latest, since_boot);
        shared
    }

    /// The same with places for other layouts than the server's own.
    #[must_use]
    pub fn with_slots(self, slots: &'static [GeneratorSlot]) -> Self {
        Self { slots, ..self }
    }

    /// The time by the clock reference, so many microseconds after the machine's start.
    pub fn expected(&self, since_boot: u64) -> UnixMicros {
        UnixMicros(self.clock_reference.load(Relaxed)).plus_micros(since_boot)
    }

    /// Makes a reading of the clocks the clock reference.
    pub fn set_clock_reference(&self, wall: UnixMicros, since_boot: u64) {
        self.clock_reference.store(wall.0.saturating_sub_unsigned(since_boot), Relaxed);
    }

    /// The wall clock, but where it has jumped too far ahead to be followed: then the time by the clock reference.
    pub fn believed(&self, wall: UnixMicros, since_boot: u64, max_clock_jump: Duration) -> UnixMicros {
        let expected = self.expected(since_boot);
        if clock_reference::is_too_far(wall.since(expected), max_clock_jump) { expected } else { wall }
    }

    /// Notes that a worker id that fits all layouts in use was asked for in vain, so many microseconds after the machine's
    /// start.
    pub fn record_vain(&self, since_boot: u64) {
        self.vain.store(since_boot.max(1), Relaxed);
    }

    /// Returns whether that was at most a few seconds ago, so that it is of no use to ask again yet.
    pub fn is_vain(&self, since_boot: u64) -> bool {
        let at = self.vain.load(Relaxed);
        at != 0 && Duration::from_micros(since_boot.saturating_sub(at)) < VAIN
    }

    /// The reading that the clocks would show now by the clock reference.
    pub(super) fn clock_reference(&self, now: &Reading) -> Reading {
        Reading { wall: self.expected(now.since_boot), ..now.clone() }
    }

    /// A layout, with the generator that serves it: `slot_ref` must have been found for this very layout.
    #[inline]
    pub fn assigned_at<'a>(&'a self, slot_ref: SlotRef, layout: &'a Layout) -> LayoutGenerator<'a> {
        match slot_ref {
            SlotRef::Slot { index, slot_generation } if index < self.slots.len() => {
                LayoutGenerator::at(&self.slots[index], slot_generation, layout)
            }
            _ => LayoutGenerator::own(&self.generator, layout),
        }
    }

    /// A number that changes with each step back of the clock and each change of a term, in whatever layout.
    pub fn generation(&self) -> u64 {
        self.generators().map(Generator::generation).fold(0, u64::wrapping_add)
    }

    /// Returns whether a term has begun, in whatever layout.
    pub fn is_issuing(&self) -> bool {
        self.generators().any(|generator| generator.limit() > Position::ZERO)
    }

    /// All generators that have been used.
    pub fn generators(&self) -> impl Iterator<Item = &Generator> {
        let used = self.slots.iter().take_while(|slot| slot.is_used());
        std::iter::once(&self.generator).chain(used.map(|slot| &slot.generator))
    }
}

/// The server's own layout, which never changes while it runs.
impl PositionSource for IssuerMemory {
    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn generator(&self) -> &Generator {
        &self.generator
    }

    #[inline]
    fn is_held(&self) -> bool {
        true
    }
}
