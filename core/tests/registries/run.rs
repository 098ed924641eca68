//! Runs: one run per seed, and many runs at the same time on all cores.

use super::fault::FAULTS;
use super::guards::Guards;
use super::registry::Trouble;
use super::seeds;
use super::world::{Event, SECOND, Shared, World, run_until};
use snowflake_ids_core::guard;
use std::fmt;
use std::ops::Range;

/// Within this time after the faults, every session has ids again.
const RECOVERY: u64 = 75 * SECOND;

/// The result of one seed.
pub struct Run {
    world: Shared,
    silent: Vec<usize>,
}

impl Run {
    pub fn new(seed: u64, guards: Guards) -> Self {
        Self::of(set_up(seed, guards))
    }

    pub fn traced(seed: u64, guards: Guards) -> Self {
        let world = set_up(seed, guards);
        world.borrow_mut().trace = Some(Vec::new());
        Self::of(world)
    }

    fn of(world: Shared) -> Self {
        let faulty = world.borrow_mut().between(60 * SECOND, 240 * SECOND);
        run_until(&world, faulty);
        // From now on one registry works. Each node that uses this registry must get ids again.
        let one = {
            let world = world.borrow_mut();
            let registries = world.registries.len();
            world.chance.below(registries)
        };
        heal(&world, Some(one));
        run_until(&world, faulty + RECOVERY);
        let mut silent = world.borrow().silent(Some(one));
        heal(&world, None);
        run_until(&world, faulty + 2 * RECOVERY);
        silent.extend(world.borrow().silent(None));
        guard::leave_out(None);
        Self { world, silent }
    }

    pub fn issues_twice(&self) -> bool {
        self.world.borrow().ledger.twice > 0
    }

    pub fn leaves_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    pub fn is_good(&self) -> bool {
        !self.issues_twice() && !self.leaves_silent()
    }

    /// The events, as text.
    pub fn story(&self) -> String {
        let world = self.world.borrow();
        let trace = world.trace.as_ref().map_or(String::new(), |trace| trace.join("\n"));
        let first = world.ledger.first_twice.as_deref().unwrap_or("none");
        format!("{trace}\nissued twice: {first}\nsilent at the end: {:?}", self.silent)
    }
}

/// Ends the faults for all registries, or for one registry while the other registries stay down.
fn heal(shared: &Shared, one: Option<usize>) {
    {
        let mut world = shared.borrow_mut();
        world.calm = true;
        world.record(|| format!("calm, with {}", one.map_or("all".into(), |one| format!("registry {one}"))));
        for registry in 0..world.registries.len() {
            let server = world.registries[registry].primary;
            world.kill(server);
        }
    }
    // The killed processes release their locks.
    let now = shared.borrow().now;
    run_until(shared, now + 1);
    let mut world = shared.borrow_mut();
    for registry in 0..world.registries.len() {
        let works = one.is_none_or(|one| one == registry);
        if world.registries[registry].is(Trouble::Altered) {
            world.repair(registry);
        }
        let server = world.registries[registry].primary;
        world.servers[server].hung_until = 0;
        world.servers[server].down_until = if works { 0 } else { u64::MAX };
        world.registries[registry].former = None;
    }
}

/// The world of a seed, before its first event.
fn set_up(seed: u64, guards: Guards) -> Shared {
    guards.impose();
    let registries = 1 + usize::try_from(seed % 3).unwrap();
    let shared = World::new(seed, registries);
    let mut world = shared.borrow_mut();
    world.shared_from = world.between(0, 80 * SECOND);
    let mut cluster = None;
    for _ in 0..2 + world.chance.below(4) {
        let start = world.between(1, 30 * SECOND);
        let node = world.add_node(start, cluster);
        // The next node may be another database of the same cluster.
        cluster = cluster.or(Some(node)).filter(|_| world.chance.once_in(3));
        // Some nodes begin with rows of their own.
        let alone = world.chance.one_of(&[0, 0, 10 * SECOND, 40 * SECOND]);
        world.nodes[node].alone_until = start + alone;
        world.nodes[node].wants_all = !world.chance.once_in(4);
    }
    world.after(1, Event::Fault);
    world.after(1, Event::Operator);
    drop(world);
    shared
}

/// The sum of many results.
#[derive(Default)]
pub struct Total {
    pub runs: u64,
    pub ids: u64,
    pub twice: u64,
    pub again: u64,
    pub silent: u64,
    pub bad: Vec<u64>,
    faults: [u64; FAULTS.len()],
}

impl Total {
    /// Runs these seeds on all cores.
    pub fn of(seeds: Range<u64>, guards: Guards) -> Self {
        seeds::sum(seeds, |seed| Self::of_one(seed, &Run::new(seed, guards)), Self::and)
    }

    fn of_one(seed: u64, run: &Run) -> Self {
        let world = run.world.borrow();
        let ledger = &world.ledger;
        Self {
            runs: 1,
            ids: ledger.issued,
            twice: ledger.twice,
            again: ledger.again,
            silent: run.silent.len() as u64,
            bad: Some(seed).filter(|_| !run.is_good()).into_iter().collect(),
            faults: world.faults,
        }
    }

    fn and(mut self, other: &Self) -> Self {
        self.runs += other.runs;
        self.ids += other.ids;
        self.twice += other.twice;
        self.again += other.again;
        self.silent += other.silent;
        self.bad.extend(&other.bad);
        self.faults.iter_mut().zip(other.faults).for_each(|(sum, count)| *sum += count);
        self
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, ids, twice, again, silent, .. } = self;
        write!(
            f,
            "registries: {runs} seeds, {ids} ids, {twice} twice, {silent} nodes silent, {again} again after a restore; faults:"
        )?;
        FAULTS.iter().zip(self.faults).try_for_each(|(fault, count)| write!(f, " {fault:?} {count}"))
    }
}
