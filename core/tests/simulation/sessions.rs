//! Sessions with their clients' calls, and the launcher, which keeps the high-water mark ahead of the sessions' ids.

use super::databases::Leases;
use super::event::{Event, Scope};
use super::host::Host;
use super::server::SECOND;
use snowflake_ids_core::server::issuer::SlotRef;
use snowflake_ids_core::session::{Session, wait_and_take};
use snowflake_ids_core::{Issued, Position, TakenPositions};
use std::num::NonZeroU32;
use std::time::Duration;

/// Calls for ids, one after the other.
pub fn session(host: &Host<'_>, number: usize) {
    let (sim, session) = (&host.sim, Session::new());
    let mut named: Vec<Named> = sim.others.borrow().iter().map(|_| Named::default()).collect();
    loop {
        let paused = host.live.paused[number].get();
        if paused > sim.now() {
            // The pause may end early, so the session checks every second.
            host.sleep_until(paused.min(sim.now() + SECOND));
            continue;
        }
        if !host.install() {
            host.rest(sim.pace);
            continue;
        }
        let layout = sim.some_layout();
        let before = host.server.scope.get();
        let ids =
            if layout == 0 { call(host, &session) } else { call_named(host, layout, &mut named[layout - 1]) };
        // An id taken before the server joined the registry is not in the registry's scope (0). If the server left the registry
        // meanwhile, the call may have waited for the worker id that the server then chose.
        let has_own = sim.scope == Scope::Alone && before != 0;
        let scope = if has_own { before } else { host.server.scope.get() };
        for id in ids {
            sim.issued(&host.server, scope, layout, id);
        }
        let pause = if sim.happens_once_in(400) {
            sim.chance.between(0, 60 * SECOND)
        } else {
            sim.chance.between(1, sim.pace)
        };
        host.rest(pause);
    }
}

/// Calls for one id, or for several ids that the session already has.
fn call(host: &Host<'_>, session: &Session) -> Vec<i64> {
    let (shared, chance, rules) = (&host.live.shared, &host.sim.chance, host.server.rules());
    let count = if chance.once_in(3) { 1 + chance.below(150) } else { 1 };
    let count = NonZeroU32::new(u32::try_from(count).unwrap()).unwrap();
    host.begin_call();
    if chance.once_in(4)
        && let Some(TakenPositions { positions: range, node_bits }) =
            session.held(shared, &host, &rules, count.get().into())
    {
        return (range.from.0..range.to.0)
            .map(|position| shared.layout.id_of(Issued { position: Position(position), node_bits }))
            .collect();
    }
    let refill = || session.refill(shared, &host, &rules, count, None, |_| {});
    let wait = || {
        let issuer = host.issuer();
        wait_and_take(&issuer, &shared.layout, None, count, None)
            .map(|waited| session.keep(waited.taken, waited.generation))
    };
    let next = session.pop(shared, None).or_else(|| refill().ok());
    match next.map_or_else(wait, Ok) {
        Ok(issued) => vec![shared.layout.id_of(issued)],
        Err(error) => {
            host.record_call(error);
            Vec::new()
        }
    }
}

/// A session's data about a named generator.
#[derive(Default)]
struct Named {
    session: Session,
    slot_ref: Option<SlotRef>,
}

/// Calls for ids of a named generator's layout.
fn call_named(host: &Host<'_>, number: usize, named: &mut Named) -> Vec<i64> {
    let (shared, chance, rules) = (&host.live.shared, &host.sim.chance, host.server.rules());
    let (layout, session) = (host.sim.layout_of(number), &named.session);
    let want = if chance.once_in(3) { 1 + chance.below(150) } else { 1 };
    let want = NonZeroU32::new(u32::try_from(want).unwrap()).unwrap();
    host.begin_call();
    if let Some(slot_ref) = named.slot_ref {
        let source = shared.assigned_at(slot_ref, &layout);
        if chance.once_in(4)
            && let Some(TakenPositions { positions: range, node_bits }) =
                session.held(&source, &host, &rules, want.get().into())
        {
            return (range.from.0..range.to.0)
                .map(|position| layout.id_of(Issued { position: Position(position), node_bits }))
                .collect();
        }
        let refill = || session.refill(&source, &host, &rules, want, None, |_| {});
        if let Some(issued) = session.pop(&source, None).or_else(|| refill().ok()) {
            return vec![layout.id_of(issued)];
        }
    }
    match wait_and_take(&host.issuer(), &layout, None, want, None) {
        Ok(waited) => {
            named.slot_ref = Some(waited.slot_ref);
            vec![layout.id_of(session.keep(waited.taken, waited.generation))]
        }
        Err(error) => {
            host.record_call(error);
            Vec::new()
        }
    }
}

/// Keeps the high-water mark ahead while ids are issued, and ends the term when the server stops.
pub fn launcher(host: &Host<'_>) {
    let (sim, live, issuer) = (&host.sim, &host.live, host.issuer());
    host.record(issuer.begin());
    let mut leases = Leases::default();
    let mut checkpoint = sim.now();
    while !live.stopping.get() {
        issuer.watch();
        let due = host.record(issuer.keep_ahead()).flatten().unwrap_or(Duration::from_secs(1));
        if !host.server.is_fixed() {
            leases.round(host, &issuer);
        }
        let due = i64::try_from(due.as_micros()).unwrap().min(sim.pace.min(400_000));
        host.rest(due.max(20_000));
        if sim.now() > checkpoint + 60 * SECOND {
            checkpoint = sim.now();
            host.server.disk.borrow_mut().checkpoint = Some(host.server.clocks.wall(checkpoint));
        }
    }
    host.record(issuer.stop());
    let server = host.server.number;
    // Sessions may continue to call for a moment.
    host.send(
        sim.chance.between(0, SECOND / 2),
        Event::Stopped { server, slot_generation: host.server.slot_generation.get() },
    );
}
