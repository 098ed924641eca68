//! The nodes, the registry, and what sessions and others do.

use super::chance::Chance;
use super::node::{Node, counter_key, round};
use super::registry::{self, Table};
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{Answer, Asked, RowKey};
use snowflake_ids_core::wire::NumbersRequest;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const SECRET: u64 = 0x77;
pub const SOURCE: u32 = 7;
/// The series of each node: the second one is dated.
pub const SERIES: [i64; 2] = [2, 3];
const KEYS: i64 = 3;

#[allow(clippy::struct_excessive_bools, reason = "each is of something else")]
pub struct World {
    pub chance: Chance,
    /// Whether nothing is lost.
    pub calm: bool,
    /// Whether the run comes to its end.
    pub quiet: bool,
    pub now: Duration,
    pub today: i32,
    pub max_step: u32,
    pub nodes: Vec<Node>,
    pub table: Table,
    /// What the registry may be set back to.
    pub earlier: Table,
    pub is_away: bool,
    /// Requests that are under way still when nobody waits for them any more.
    pub late: Vec<NumbersRequest>,
    given: BTreeMap<(RowKey, i32), BTreeSet<i64>>,
    wrong: Option<String>,
    story: bool,
}

impl World {
    fn new(seed: u64, story: bool) -> Self {
        let chance = Chance::new(seed);
        let count = chance.one_of(&[1, 2, 3]);
        let max_step = chance.one_of(&[1, 4]);
        let calm = seed.is_multiple_of(2);
        // What leaves memory after another node had numbers of the key is missing.
        let places = if calm && count > 1 && max_step > 1 { 16 } else { 3 };
        Self {
            chance,
            calm,
            quiet: false,
            now: Duration::ZERO,
            today: 9,
            max_step,
            nodes: (0..count).map(|_| Node::new(places)).collect(),
            table: Table::default(),
            earlier: Table::default(),
            is_away: false,
            late: Vec::new(),
            given: BTreeMap::new(),
            wrong: None,
            story,
        }
    }

    pub fn tell(&self, what: impl FnOnce() -> String) {
        if self.story {
            println!("{}", what());
        }
    }

    pub fn fault(&mut self, wrong: String) {
        self.tell(|| wrong.clone());
        self.wrong.get_or_insert(wrong);
    }

    fn give(&mut self, node: usize, row: &RowKey, day: i32, number: i64) {
        self.tell(|| format!("node {node} gives {number} of day {day} of {row:?}"));
        if !self.given.entry((row.clone(), day)).or_default().insert(number) {
            self.fault(format!("{row:?} gave {number} of day {day} twice"));
        }
    }

    /// A session takes a number, or asks for one.
    fn call(&mut self, node: usize, session: usize) {
        let series = self.chance.one_of(&SERIES);
        let row = RowKey { series, key: Key::Bigint(self.chance.between(0, KEYS)) };
        let day = if series % 2 == 1 { self.today - i32::from(self.chance.once_in(6)) } else { 0 };
        let taken = self.nodes[node].partition.borrow_mut().take(&counter_key(&row), day, i64::MAX);
        if let Ok(taken) = taken {
            self.give(node, &row, taken.day, taken.number);
            return;
        }
        let asked = Asked {
            database: Node::database(),
            source: SOURCE,
            series,
            key: &row.key,
            day,
            max_value: i64::MAX,
        };
        let ticket = self.nodes[node].requests.borrow_mut().ask(session, &asked).unwrap();
        self.nodes[node].calls[session] = Some((row, day, ticket));
    }

    /// A session looks for its answer; it may go away.
    fn wait(&mut self, node: usize, session: usize) {
        let Some((row, _, ticket)) = self.nodes[node].calls[session].clone() else { return };
        let answer = self.nodes[node].requests.borrow_mut().answer_to(session, ticket);
        match answer {
            Some(Answer::Number { number, day }) => self.give(node, &row, day, number),
            Some(Answer::Refused(_)) if !self.calm => {}
            Some(other) => self.fault(format!("{row:?} is answered {other:?}")),
            None if !self.quiet && !self.calm && self.chance.once_in(20) => {
                self.nodes[node].requests.borrow_mut().withdraw(session);
            }
            None => return,
        }
        self.nodes[node].calls[session] = None;
    }

    /// Whether all numbers that were reserved of keys without periods were given, or are in memory; and those that were given are the
    /// first ones where none is reserved ahead.
    fn check_complete(&mut self) {
        for key in 0..KEYS {
            let row = RowKey { series: SERIES[0], key: Key::Bigint(key) };
            let mut known = self.given.get(&(row.clone(), 0)).cloned().unwrap_or_default();
            for node in &self.nodes {
                let left = node
                    .partition
                    .borrow()
                    .iter()
                    .filter(|left| left.key == counter_key(&row))
                    .collect::<Vec<_>>();
                known.extend(left.iter().flat_map(|left| left.given + 1..=left.limit));
            }
            let last = registry::last(&self.table, key);
            if let Some(missing) = (1..=last).find(|number| !known.contains(number)) {
                self.fault(format!("{row:?} misses {missing} of {last}: {known:?}"));
            }
        }
    }
}

/// Something happens, also in the midst of a round.
pub fn act(world: &RefCell<World>) {
    let (what, node) = {
        let world = world.borrow();
        (world.chance.below(100), world.chance.below(world.nodes.len()))
    };
    let mut at = world.borrow_mut();
    match what {
        0..70 => {
            let session = at.chance.below(at.nodes[node].calls.len());
            if at.nodes[node].calls[session].is_some() {
                at.wait(node, session);
            } else {
                at.call(node, session);
            }
        }
        70..74 => at.today += i32::from(at.chance.once_in(3)),
        74..78 => {
            let millis = at.chance.one_of(&[1, 100, 2_000, 70_000]);
            at.now += Duration::from_millis(millis);
        }
        78..94 => {
            drop(at);
            round(world, node);
        }
        94..98 if !at.calm => {
            drop(at);
            registry::trouble(world);
        }
        98 if !at.calm => {
            at.tell(|| format!("node {node} crashes"));
            at.nodes[node].restart(false);
        }
        _ => {}
    }
}

/// All calls are answered.
fn settle(world: &RefCell<World>) {
    let nodes = world.borrow().nodes.len();
    for _ in 0..100 {
        for node in 0..nodes {
            round(world, node);
            let sessions = world.borrow().nodes[node].calls.len();
            (0..sessions).for_each(|session| world.borrow_mut().wait(node, session));
        }
        if world.borrow().nodes.iter().all(|node| node.calls.iter().all(Option::is_none)) {
            return;
        }
    }
    world.borrow_mut().fault("calls are not answered".into());
}

/// What went wrong in the run of a seed.
pub fn run(seed: u64, story: bool) -> Option<String> {
    let world = RefCell::new(World::new(seed, story));
    for _ in 0..150 {
        act(&world);
        if world.borrow().chance.once_in(60) {
            world.borrow_mut().quiet = true;
            let away = std::mem::replace(&mut world.borrow_mut().is_away, false);
            settle(&world);
            let mut at = world.borrow_mut();
            (at.quiet, at.is_away) = (false, away);
            let node = at.chance.below(at.nodes.len());
            // What is left over after another node had numbers of the key is missing.
            if !at.calm || at.nodes.len() == 1 || at.max_step == 1 {
                at.tell(|| format!("node {node} is restarted"));
                at.nodes[node].restart(true);
            }
        }
    }
    {
        let mut world = world.borrow_mut();
        (world.quiet, world.is_away) = (true, false);
    }
    settle(&world);
    let mut world = world.borrow_mut();
    if world.calm {
        world.check_complete();
    }
    world.wrong.take()
}
