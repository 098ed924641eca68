//! The issuer's data in shared memory.

use super::slot::{GeneratorSlot, LayoutGenerator, PositionSource, SlotRef};
use crate::clock::UnixMicros;
use crate::generator::safe_position::Frontier;
use crate::generator::snowflake::Generator;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::clock_reference::{self, Reading};
use crate::server::state::Identity;
use crate::sync::CacheLine;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The pause after a failed request for a worker id that fits all layouts in use. After the pause, a session may send
/// the request again.
const VAIN: Duration = Duration::from_secs(5);

/// Counters since the server's start, for the status view.
#[derive(Debug, Default)]
pub struct IssuerCounts {
    /// The number of writes of the state. Each write syncs the state file.
    pub reservations: AtomicU64,
    /// The number of writes of the state by calls for ids, not by the launcher.
    pub by_callers: AtomicU64,
    /// The number of steps forward of the clock.
    pub steps_forward: AtomicU64,
    /// The size of the last step forward, in microseconds.
    pub last_step_forward: AtomicU64,
    /// The number of switches to another rollback value or worker id because the clock was stepped back.
    pub switches: AtomicU64,
    /// The number of calls for ids that failed because of the clock, a missing worker id, or a tag without ids.
    pub failed_calls: AtomicU64,
}

/// Values of the issuer that processes read without the state lock. The values are copies of parts of the state, the
/// result of the last write, and the results of the last clock checks.
#[derive(Debug, Default)]
pub struct IssuerStatus {
    /// The time by which the wall clock is ahead of the time that ids follow, in microseconds.
    pub clock_ahead: AtomicU64,
    /// The time by which a remote registry's clock was behind this server's clock at the registry's last answer, in
    /// microseconds.
    pub registry_behind: AtomicI64,
    /// True if the last write of the state failed.
    pub unwritable: AtomicBool,
    /// The expiry of the lease of the worker id, in microseconds since 1970; 0 if there is no lease, or if the server
    /// chose its worker id.
    pub expiry: AtomicI64,
    /// The OID of the database through which worker ids are leased; 0 if there is no such database.
    pub registry: AtomicU64,
    /// True if no database of this server uses or is a registry.
    pub alone: AtomicBool,
    /// The OID of the database that joins or leaves a registry in a transaction whose outcome is not recorded yet; 0 if there
    /// is no such database.
    pub moving_to: AtomicU64,
}

impl IssuerStatus {
    /// Returns the expiry of the lease; None if there is no lease, or if the server chose its worker id.
    pub fn expiry(&self) -> Option<UnixMicros> {
        Some(self.expiry.load(Relaxed)).filter(|expiry| *expiry != 0).map(UnixMicros)
    }

    /// Returns the OID of the database through which worker ids are leased.
    pub fn registry(&self) -> Option<u32> {
        oid(&self.registry)
    }

    /// Returns the OID of the database that joins or leaves a registry in a transaction whose outcome is not recorded
    /// yet.
    pub fn moving_to(&self) -> Option<u32> {
        oid(&self.moving_to)
    }
}

fn oid(cell: &AtomicU64) -> Option<u32> {
    u32::try_from(cell.load(Relaxed)).ok().filter(|oid| *oid != 0)
}

/// The part of the issuer that is in shared memory.
#[derive(Debug)]
#[repr(C)]
pub struct IssuerMemory {
    /// The generator of the server's own layout.
    pub generator: Generator,
    /// The highest published next position of `generator`.
    pub frontier: Frontier,
    /// The server's own layout.
    pub layout: Layout,
    /// The node that the settings ask for.
    pub identity: Identity,
    /// The clock reference, stored as the wall clock's time at the machine's start. The server's start and each trusted
    /// reading of the clocks set this field, so it is kept apart from the fields that every call reads.
    clock_reference: AtomicI64,
    /// The time of the checkpoint from which the server started.
    pub checkpoint: Option<UnixMicros>,
    /// The counters.
    pub counts: CacheLine<IssuerCounts>,
    /// The current values.
    pub status: CacheLine<IssuerStatus>,
    /// The generators of other layouts.
    pub slots: &'static [GeneratorSlot],
    /// The time of the last failed request for a worker id that fits all layouts in use, in microseconds since the
    /// machine's start; 0 if no such request has failed.
    vain: AtomicU64,
}

impl IssuerMemory {
    /// Returns the memory of a server that starts from `checkpoint` while the machine's clocks show `wall` and
    /// `since_boot`. `slots` are for layouts other than the server's own layout.
    pub fn new(
        layout: Layout,
        identity: Identity,
        wall: UnixMicros,
        since_boot: u64,
        checkpoint: Option<UnixMicros>,
        slots: &'static [GeneratorSlot],
    ) -> Self {
        // A clock that is behind the last checkpoint has not been set yet, so the checkpoint's time is used.
        let latest = checkpoint.map_or(wall, |checkpoint| checkpoint.max(wall));
        let shared = Self {
            generator: Generator::default(),
            frontier: Frontier::default(),
            layout,
            identity,
            clock_reference: AtomicI64::new(0),
            checkpoint,
            counts: CacheLine::default(),
            status: CacheLine::default(),
            slots,
            vain: AtomicU64::new(0),
        };
        shared.set_clock_reference(latest, since_boot);
        shared
    }

    /// Returns the time that the clock reference predicts for `since_boot` microseconds after the machine's start.
    pub fn expected(&self, since_boot: u64) -> UnixMicros {
        UnixMicros(self.clock_reference.load(Relaxed)).plus_micros(since_boot)
    }

    /// Makes a reading of the clocks the clock reference.
    pub fn set_clock_reference(&self, wall: UnixMicros, since_boot: u64) {
        self.clock_reference.store(wall.0.saturating_sub_unsigned(since_boot), Relaxed);
    }

    /// Returns the wall clock's time, or the time that the clock reference predicts if the wall clock jumped too far
    /// ahead.
    pub fn believed(&self, wall: UnixMicros, since_boot: u64, max_clock_jump: Duration) -> UnixMicros {
        let expected = self.expected(since_boot);
        if clock_reference::is_too_far(wall.since(expected), max_clock_jump) { expected } else { wall }
    }

    /// Records a failed request for a worker id that fits all layouts in use. `since_boot` is the present time in
    /// microseconds since the machine's start.
    pub fn record_vain(&self, since_boot: u64) {
        self.vain.store(since_boot.max(1), Relaxed);
    }

    /// Returns true if a request for a worker id that fits all layouts failed less than `VAIN` ago. Another request
    /// would probably fail, too.
    pub fn is_vain(&self, since_boot: u64) -> bool {
        let at = self.vain.load(Relaxed);
        at != 0 && Duration::from_micros(since_boot.saturating_sub(at)) < VAIN
    }

    pub(super) fn clock_reference(&self, now: &Reading) -> Reading {
        Reading { wall: self.expected(now.since_boot), ..now.clone() }
    }

    /// Returns a layout with its generator. The caller must have got `slot_ref` when a slot was assigned to this
    /// layout.
    #[inline]
    pub fn assigned_at<'a>(&'a self, slot_ref: SlotRef, layout: &'a Layout) -> LayoutGenerator<'a> {
        match slot_ref {
            SlotRef::Slot { index, slot_generation } if index < self.slots.len() => {
                LayoutGenerator::at(&self.slots[index], slot_generation, layout)
            }
            _ => LayoutGenerator::own(&self.generator, layout),
        }
    }

    /// Returns a number that changes with each step back of the clock, each change of a term and each move of the
    /// frontier, in any layout.
    pub fn generation(&self) -> u64 {
        self.generators().map(Generator::generation).fold(0, u64::wrapping_add)
    }

    /// Returns true if a term is open in any layout.
    pub fn is_issuing(&self) -> bool {
        self.generators().any(|generator| generator.limit() > Position::ZERO)
    }

    /// Returns all generators that have been used.
    pub fn generators(&self) -> impl Iterator<Item = &Generator> {
        let used = self.slots.iter().take_while(|slot| slot.is_used());
        std::iter::once(&self.generator).chain(used.map(|slot| &slot.generator))
    }
}

/// The issuer, as one process of the server uses it.
#[derive(Debug)]
pub struct Issuer<'a, H> {
    /// The issuer's data in shared memory.
    pub shared: &'a IssuerMemory,
    /// The server, or a simulated server.
    pub host: H,
}

/// The server's own layout, which does not change while the server runs.
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
