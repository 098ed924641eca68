//! The assignment of slots to layouts.

use super::counter::{Counter, end, tick_of};
use super::error::{IssuerError, NoRoom};
use super::host::Host;
use super::shared::Issuer;
use super::slot::{Issuing, Occupancy, SlotRef};
use crate::ids::layout::{Field, Layout};
use crate::server::state::{Identity, State};
use crate::sync::Ordering;
use rustc_hash::FxHashMap;
use std::time::Duration;

/// The time without a call for ids of a slot's layout after which another layout may get the slot.
const IDLE: Duration = Duration::from_mins(1);

impl<H: Host> Issuer<'_, H> {
    /// Finds a slot for a layout. The choices, in this order, are the layout's current slot, a slot that was never
    /// used, the slot that was idle longest, and a slot of the database with the most slots. The slot's term ends
    /// before the slot gets another layout. Sessions can take ids from the slot after [`Issuer::provide_in`] has begun
    /// a term there.
    ///
    /// A database may get another slot in two cases: the database has fewer slots than there are free slots, or another
    /// database has at least two slots more. One database thus gets at most half of the slots that other databases do
    /// not use. Competing databases end up with equal numbers of slots.
    pub fn assign_slot(&self, layout: &Layout) -> Result<SlotRef, IssuerError> {
        if *layout == self.shared.layout {
            return Ok(SlotRef::Own);
        }
        self.assign_slot_in(&mut self.host.lock(), layout)
    }

    /// Finds a slot under the state lock. See [`Issuer::assign_slot`].
    pub(super) fn assign_slot_in(
        &self,
        issuing: &mut Issuing,
        layout: &Layout,
    ) -> Result<SlotRef, IssuerError> {
        if *layout == self.shared.layout {
            return Ok(SlotRef::Own);
        }
        if let Some(index) = issuing.slot_of(layout) {
            return Ok(self.slot_ref_at(index));
        }
        let mut state = self.open(issuing)?;
        self.check_room(&mut state, layout)?;
        let index = self.make_room(issuing, &mut state)?;
        let (slot, now) = (&self.shared.slots[index], self.host.reading());
        debug_assert!(!slot.generator.is_open(), "a place changes hands while its generator is open");
        slot.reuse();
        slot.generator.resume(tick_of(layout, state.seen), tick_of(layout, now.wall));
        issuing.slots[index] = Occupancy {
            layout: Some(*layout),
            database: self.host.database(),
            assigned_at: now.since_boot,
            seen: (slot.generator.next(), now.since_boot),
        };
        Ok(self.slot_ref_at(index))
    }

    fn slot_ref_at(&self, index: usize) -> SlotRef {
        let slot_generation = self.shared.slots[index].slot_generation.load(Ordering::Acquire);
        SlotRef::Slot { index, slot_generation }
    }

    /// Returns the layout and the generator of a `SlotRef`; None if another layout has the slot now. The caller holds
    /// the state lock.
    pub(super) fn counter_at(&self, issuing: &Issuing, slot_ref: SlotRef) -> Option<Counter<'_>> {
        match slot_ref {
            SlotRef::Own => Some(self.own_counter()),
            SlotRef::Slot { index, .. } => {
                let layout = issuing.slots.get(index)?.layout?;
                (self.slot_ref_at(index) == slot_ref).then(|| self.counter_of(index, layout))
            }
        }
    }

    /// Checks that this server's node fits a layout. A server without a registry may choose another worker id for the
    /// layout. A server that leases its worker id records that its next worker id must fit the layout.
    pub(super) fn check_room(&self, state: &mut State, layout: &Layout) -> Result<(), IssuerError> {
        let (datacenter, leased) = match self.shared.identity {
            Identity::Fixed { datacenter, .. } => (Some(datacenter), false),
            Identity::Leased { datacenter } => (datacenter, true),
        };
        let node = state.node_in(layout);
        let datacenter_id = datacenter.or(node.map(|node| node.datacenter)).unwrap_or(0);
        let misfit = if layout.check(Field::Datacenter, datacenter_id.into()).is_err() {
            let leased = leased && datacenter.is_none();
            NoRoom { layout: *layout, field: Field::Datacenter, value: datacenter_id, leased }
        } else {
            let worker_id = node.map_or(0, |node| node.worker_id);
            if layout.check(Field::Worker, worker_id.into()).is_ok() {
                return Ok(());
            }
            NoRoom { layout: *layout, field: Field::Worker, value: worker_id, leased }
        };
        if !misfit.leased {
            return Err(misfit.into());
        }
        let settings = self.host.settings();
        let usable = self.believed_now().plus_micros(settings.rules.max_drift);
        if state.choose_in(layout, datacenter, settings.policy, usable) {
            return Ok(());
        }
        // Any role may repeat this call, so a repeated call does not write the state again.
        if *layout != self.shared.layout && state.want(layout, self.believed_now()) {
            self.write(state)?;
        }
        Err(misfit.into())
    }

    /// Records the present time for each slot whose next position has changed since the last observation.
    pub(super) fn observe_slots(&self, issuing: &mut Issuing) {
        let now = self.host.reading().since_boot;
        for (slot, occupancy) in self.shared.slots.iter().zip(issuing.slots.iter_mut()) {
            if occupancy.layout.is_none() {
                break;
            }
            let next = slot.generator.next();
            if next != occupancy.seen.0 {
                occupancy.seen = (next, now);
            }
        }
    }

    /// Returns a slot that was never used, or else the slot that was idle longest. If no slot is idle, returns a slot of
    /// the database with the most slots. Ends the slot's term.
    fn make_room(&self, issuing: &mut Issuing, state: &mut State) -> Result<usize, IssuerError> {
        let (now, believed) = (self.host.reading().since_boot, self.believed_now());
        let passed = |since: u64| Duration::from_micros(now.saturating_sub(since));
        let is_idle = |index: usize, occupancy: &Occupancy| {
            let Some(layout) = occupancy.layout else { return true };
            let next = self.shared.slots[index].generator.next();
            // A slot is idle if its last ids are older than `IDLE` by the clock. A slot is also idle if no positions
            // were taken from the slot for `IDLE`, because ids from a time when the clock was ahead do not look old.
            let is_passed = layout.instant_above(next).plus(IDLE) <= believed;
            let is_idle = next == occupancy.seen.0 && passed(occupancy.seen.1) >= IDLE;
            passed(occupancy.assigned_at) >= IDLE && (is_passed || is_idle)
        };
        let (slots, database) = (issuing.slots.len(), self.host.database());
        let used = issuing.used().count();
        let (idle, active): (Vec<_>, Vec<_>) =
            issuing.used().enumerate().partition(|(index, occupancy)| is_idle(*index, occupancy));
        let mut holders = FxHashMap::<u32, usize>::default();
        for (_, occupancy) in &active {
            *holders.entry(occupancy.database).or_default() += 1;
        }
        let held = holders.get(&database).copied().unwrap_or_default();
        let larger = holders.into_iter().filter(|(_, holds)| held + 1 < *holds);
        let crowd = larger.max_by_key(|(of, holds)| (*holds, *of)).map(|(of, _)| of);
        let free = slots - active.len();
        let mut candidates = idle;
        if candidates.is_empty() {
            candidates = active;
            candidates.retain(|(_, occupancy)| Some(occupancy.database) == crowd);
        }
        let longest = candidates.iter().map(|(index, occupancy)| (passed(occupancy.seen.1), *index)).max();
        self.observe_slots(issuing);
        if held >= free && crowd.is_none() {
            return Err(IssuerError::NoSlot { slots, held, free });
        } else if used < slots {
            return Ok(used);
        }
        let (_, index) = longest.ok_or(IssuerError::NoSlot { slots, held, free })?;
        let layout = issuing.slots[index].layout.unwrap_or(self.shared.layout);
        let counter = self.counter_of(index, layout);
        if counter.generator.is_open() {
            end(issuing, state, &counter);
            self.write(state)?;
        }
        let furthest = counter.generator.furthest();
        issuing.gone = issuing.gone.max(Some(layout.instant_above(furthest)));
        Ok(index)
    }
}
