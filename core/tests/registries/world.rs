//! Nodes, registries and what travels between them, one event after the other.

use super::chance::Chance;
use super::fault::FAULTS;
use super::guards::Guards;
use super::ledger::Ledger;
use super::node::Node;
use super::registry::{Registry, Trouble};
use snowflake_ids_core::reservation::Outcome;
use snowflake_ids_core::wire::{Request, RequestBody, Response, ResponseBody};
use std::collections::BTreeMap;

/// Times are milliseconds since the run began.
pub const SECOND: u64 = 1_000;
/// Who has had no id of a tag for so long is silent.
const SILENCE: u64 = 15 * SECOND;

/// The tags, by their place here.
pub const TAGS: [&str; 2] = ["orders", "items"];
pub type Tag = usize;

#[derive(Clone)]
pub enum Event {
    Start { node: usize },
    Call { node: usize },
    Refill { node: usize },
    Question { node: usize, number: u64, registry: usize, text: String },
    Response { node: usize, number: u64, text: Option<String> },
    Fault,
    Operator,
}

pub struct World {
    pub now: u64,
    pub chance: Chance,
    pub guards: Guards,
    pub nodes: Vec<Node>,
    pub registries: Vec<Registry>,
    /// How many identities there are.
    pub identities: usize,
    /// Whether the rows of all registries are shares of one another,
    pub shared: bool,
    /// and from when on they may be.
    pub shared_from: u64,
    /// Nothing goes wrong any more.
    pub calm: bool,
    pub ledger: Ledger,
    pub faults: [u64; FAULTS.len()],
    pub longest_wait: u64,
    pub trace: Option<Vec<String>>,
    /// In their order.
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
}

impl World {
    pub fn new(seed: u64, guards: Guards, registries: usize) -> Self {
        Self {
            now: 0,
            chance: Chance::new(seed),
            guards,
            nodes: Vec::new(),
            registries: (0..registries).map(Registry::new).collect(),
            identities: registries,
            shared: false,
            shared_from: 0,
            calm: false,
            ledger: Ledger::default(),
            faults: [0; FAULTS.len()],
            longest_wait: 0,
            trace: None,
            events: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// One where nothing goes wrong by itself, and all nodes use all registries.
    pub fn of_several(seed: u64, registries: usize, nodes: usize) -> Self {
        let mut world = Self::new(seed, Guards::default(), registries);
        world.calm = true;
        for _ in 0..nodes {
            world.add_node(1);
            world.nodes.last_mut().unwrap().wants_all = true;
        }
        world.after(1, Event::Operator);
        world
    }

    pub fn add_node(&mut self, start: u64) {
        let node = self.nodes.len();
        self.nodes.push(Node::default());
        self.after(start, Event::Start { node });
        self.after(start, Event::Call { node });
    }

    /// A number from `from` up to but not including `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        self.chance.between(from.cast_signed(), to.cast_signed()).cast_unsigned()
    }

    pub fn after(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + delay, self.sequence), event);
    }

    /// A number that no row had before.
    pub fn version(&mut self) -> i64 {
        self.sequence += 1;
        version_of(self.sequence)
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{}.{:03} {}", now / SECOND, now % SECOND, what()));
        }
    }

    pub fn run_until(&mut self, end: u64) {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((now, _), event) = entry.remove_entry();
            self.now = now;
            match event {
                Event::Start { node } => self.start(node),
                Event::Call { node } => self.call(node),
                Event::Refill { node } => self.refill(node),
                Event::Question { node, number, registry, text } => {
                    self.question(node, number, registry, text);
                }
                Event::Response { node, number, text } => self.answered(node, number, text),
                Event::Fault => self.fault(),
                Event::Operator => self.operate(),
            }
        }
        self.now = end;
    }

    /// A message arrives soon, late, twice or never.
    pub fn travel(&mut self, message: &Event) {
        let fate = if self.calm { 30 } else { self.chance.below(30) };
        let copies = [0, 2].get(fate).copied().unwrap_or(1);
        for _ in 0..copies {
            let late = !self.calm && self.chance.once_in(25);
            let delay = if late { self.between(SECOND, 12 * SECOND) } else { self.between(1, 40) };
            self.after(delay, message.clone());
        }
    }

    /// A question comes to a registry. One that hangs reads it later.
    fn question(&mut self, node: usize, number: u64, registry: usize, text: String) {
        let (now, this) = (self.now, &mut self.registries[registry]);
        if this.down_until > now {
            return self.after(1, Event::Response { node, number, text: None });
        }
        if this.hung_until > now {
            let wait = this.hung_until - now;
            return self.after(wait, Event::Question { node, number, registry, text });
        }
        let request = Request::from_text(&text).unwrap().unwrap();
        let seen = request.registry.as_ref().map_or(0, |seen| seen.timeline);
        let tags = tags_of(&request);
        let version = version_of(self.sequence);
        let answer = match &mut this.former {
            // Whoever knows the successor may get to the former primary; from others it is cut off.
            Some((former, until)) if *until > now && seen > former.who.timeline && self.chance.once_in(2) => {
                former.answer(request, version, self.guards)
            }
            _ => this.primary.answer(request, version, self.guards),
        };
        this.note();
        if this.is(Trouble::SetBack) {
            self.doubt(&tags, &answer);
        }
        self.travel(&Event::Response { node, number, text: Some(answer.to_text().unwrap()) });
    }

    /// What was reserved may have been reserved before.
    fn doubt(&mut self, tags: &[Tag], answer: &Response) {
        let ResponseBody::Reserved(outcomes) = &answer.said else { return };
        for (tag, outcome) in tags.iter().zip(outcomes) {
            if let Outcome::Reserved(reserved) = outcome {
                self.ledger.doubt(*tag, reserved.supply.range);
            }
        }
    }

    /// Nodes that use this registry, or any, and had no id of some tag of late.
    pub fn silent(&self, registry: Option<usize>) -> Vec<usize> {
        let served = |node: &Node| {
            let uses = |registry| node.disk.sources.iter().any(|source| source.registry == registry);
            node.disk.sources.is_empty() || registry.is_none_or(uses)
        };
        let silent = |node: &Node| node.last.iter().any(|last| self.now - last > SILENCE);
        let nodes = self.nodes.iter().enumerate().filter(|(_, node)| served(node) && silent(node));
        nodes.map(|(node, _)| node).collect()
    }
}

/// The first of the versions that rows get in one event. They say nothing of how often the row was written.
fn version_of(sequence: u64) -> i64 {
    sequence.wrapping_mul(1 << 8).cast_signed()
}

/// The tags that ids are wanted of.
fn tags_of(request: &Request) -> Vec<Tag> {
    let RequestBody::Reserve(wants) = &request.ask else { return Vec::new() };
    wants.iter().filter_map(|want| TAGS.iter().position(|tag| *tag == want.tag)).collect()
}
