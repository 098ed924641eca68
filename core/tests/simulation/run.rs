//! Runs: one run per seed, and many runs at the same time on all cores.

use super::event::{BEGIN, Event, Scope};
use super::faults::{FAULTS, Faults};
use super::operator::MAX_RECOVERY;
use super::seeds;
use super::server::{EXPIRY, SECOND};
use super::world::World;
use snowflake_ids_core::Layout;
use std::fmt;
use std::ops::Range;
use std::panic::catch_unwind;

/// The result of one seed.
pub struct Run {
    world: World,
    silent: Vec<usize>,
}

impl Run {
    pub fn new(seed: u64) -> Self {
        Self::of(set_up(seed))
    }

    /// Runs a seed and prints each event as it happens.
    pub fn told(seed: u64) -> Self {
        let world = set_up(seed);
        world.told.set(true);
        Self::of(world)
    }

    fn of(mut world: World) -> Self {
        let many = world.servers.len() > 100;
        let faulty = if many { 100 * SECOND } else { world.chance.between(120, 900) * SECOND };
        for server in 0..world.servers.len() {
            world.start(server);
        }
        for _ in 0..world.servers.len().div_ceil(6) {
            world.after(1, Event::Fault);
        }
        world.after(20 * SECOND, Event::Operator);
        world.run_until(BEGIN + faulty);
        world.heal();
        world.run_until(BEGIN + faulty + if many { 2 * EXPIRY } else { 4 * EXPIRY });
        if !world.silent().is_empty() {
            world.run_until(BEGIN + faulty + MAX_RECOVERY);
        }
        let silent = world.silent();
        Self { world, silent }
    }

    pub fn twice(&self) -> u64 {
        self.world.ledger.borrow().twice
    }

    pub fn issues_twice(&self) -> bool {
        self.twice() > 0
    }

    pub fn is_good(&self) -> bool {
        self.twice() == 0 && self.silent.is_empty() && self.damaged() == 0
    }

    /// How often a state file could not be read.
    pub fn damaged(&self) -> u64 {
        self.world.damaged.get()
    }

    /// The faults found, as text.
    pub fn verdict(&self) -> String {
        let servers: Vec<String> = self.silent.iter().map(|server| self.world.describe(*server)).collect();
        let ledger = self.world.ledger.borrow();
        let first = ledger.first_twice.as_deref().unwrap_or("none");
        format!("scope {:?}\nissued twice: {first}\nsilent at the end: {servers:#?}", self.world.scope)
    }
}

/// The scopes of seeds 0 to 4, then repeated.
pub const SCOPES: [Scope; 5] = [Scope::Shared, Scope::Tight, Scope::Alone, Scope::Numbers, Scope::Succession];

/// The world of a seed, before its first event.
fn set_up(seed: u64) -> World {
    let many = seed % 1_000 == 499;
    let scope = SCOPES[usize::try_from(seed % 5).unwrap()];
    let scope = if many { Scope::Shared } else { scope };
    let layout = match (many, scope, seed / 5 % 2) {
        (true, ..) => "34/0/11/1r/6 unit=1s epoch=2020-01-01",
        (_, Scope::Numbers | Scope::Succession, 0) => "34/0/10/6 unit=1s epoch=2020-01-01",
        (_, Scope::Numbers | Scope::Succession, _) => "34/0/10/2r/6 unit=1s epoch=2020-01-01",
        (_, Scope::Tight, 0) => "34/0/2/6 unit=1s epoch=2020-01-01",
        (_, Scope::Tight, _) => "34/0/2/1r/6 unit=1s epoch=2020-01-01",
        (.., 0) => "34/0/5/6 unit=1s epoch=2020-01-01",
        _ => "34/0/5/1r/6 unit=1s epoch=2020-01-01",
    };
    let others = match (many, scope) {
        (true, _) => ["41/0/11/4 epoch=2020-01-01", "30/0/12/8 unit=10s epoch=2020-01-01"],
        (_, Scope::Numbers | Scope::Succession) => {
            ["41/0/10/1r/4 epoch=2020-01-01", "30/0/3/8 unit=10s epoch=2020-01-01"]
        }
        (_, Scope::Tight) => ["41/0/3/4 epoch=2020-01-01", "30/0/2/8 unit=10s epoch=2020-01-01"],
        (_, Scope::Alone) => ["41/0/4/4 epoch=2020-01-01", "30/0/6/8 unit=10s epoch=2020-01-01"],
        (_, Scope::Shared) => ["41/0/4/4 epoch=2020-01-01", "30/0/5/1r/8 unit=10s epoch=2020-01-01"],
    };
    let layout: Layout = layout.parse().unwrap();
    let pace = if many { 8 * SECOND } else { 2 * SECOND };
    let mut world = World::new(seed, scope, layout, pace);
    world.others.replace(others.iter().map(|layout| layout.parse().unwrap()).collect());
    // With three slots, a database may have two.
    world.max_slots.set(1 + 2 * usize::try_from(seed / 2 % 2).unwrap());
    let servers = match scope {
        _ if many => 256,
        Scope::Tight => {
            if seed / 5 % 4 < 2 {
                3
            } else {
                4
            }
        }
        _ => 1 + world.chance.below(6),
    };
    for _ in 0..servers {
        world.add_server();
    }
    world
}

/// The sum of many results.
#[derive(Default)]
pub struct Total {
    pub runs: u64,
    pub servers: u64,
    pub ids: u64,
    pub in_others: u64,
    pub twice: u64,
    pub silent: u64,
    pub bad: Vec<u64>,
    faults: Faults,
}

impl Total {
    /// Runs these seeds on all cores.
    pub fn of(seeds: Range<u64>) -> Self {
        // A run counts as bad if an assertion of the shipped code fails.
        let run = |seed| catch_unwind(|| Self::of_one(seed, &Run::new(seed)));
        seeds::sum(seeds, |seed| run(seed).unwrap_or_else(|_| Self::bad(seed)), Self::and)
    }

    fn bad(seed: u64) -> Self {
        Self { runs: 1, bad: vec![seed], ..Self::default() }
    }

    fn of_one(seed: u64, run: &Run) -> Self {
        Self {
            runs: 1,
            servers: run.world.servers.len() as u64,
            ids: run.world.ledger.borrow().issued,
            in_others: run.world.ledger.borrow().in_others,
            twice: run.twice(),
            silent: run.silent.len() as u64,
            faults: run.world.faults.clone(),
            ..if run.is_good() { Self::default() } else { Self::bad(seed) }
        }
    }

    fn and(mut self, other: &Self) -> Self {
        self.runs += other.runs;
        self.servers += other.servers;
        self.ids += other.ids;
        self.in_others += other.in_others;
        self.twice += other.twice;
        self.silent += other.silent;
        self.bad.extend(&other.bad);
        self.bad.sort_unstable();
        self.faults.add(&other.faults);
        self
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, servers, ids, in_others, twice, silent, .. } = self;
        write!(
            f,
            "simulation: {runs} seeds, {servers} servers, {ids} ids, of which {in_others} of other layouts, {twice} twice, {silent} servers silent at the end; faults:"
        )?;
        FAULTS.iter().zip(self.faults.0).try_for_each(|(fault, count)| write!(f, " {fault:?} {count}"))
    }
}
