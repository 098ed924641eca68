//! How a node starts and ends, comes to registries, and leaves them.

use super::guards::Guard;
use super::node::{About, Live, Node, Received, Source, Stock};
use super::registry::{Handed, Line, Trouble};
use super::world::{Event, SECOND, TAGS, Tag, World};
use serde_json::value::RawValue;
use snowflake_ids_core::definition::Range;
use snowflake_ids_core::reservation::{CarryOver, Share};
use snowflake_ids_core::segment::Shelves;
use snowflake_ids_core::wire::{self, RequestBody, Response, ResponseBody};

/// A node that comes to registries, one after the other.
pub struct Join {
    registries: Vec<usize>,
    /// Those that have its rows.
    done: Vec<wire::Registry>,
    /// The highest ids that it knows of.
    highest: Vec<(Tag, i64)>,
    /// It uses them already, and attaches a column that has ids up to the highest.
    attaches: bool,
}

/// How many ids an attached column has.
const ATTACHED: i64 = 40;

impl World {
    pub fn start(&mut self, node: usize) {
        let Node { disk, live, .. } = &mut self.nodes[node];
        *live = Some(Live::new(disk.sources.len()));
    }

    pub fn crash(&mut self, node: usize) -> bool {
        let delay = self.between(1, 8 * SECOND);
        let lived = self.nodes[node].live.take().is_some();
        if lived {
            self.after(delay, Event::Start { node });
        }
        lived
    }

    /// What is in the buffers is noted: whoever reserves next goes on with it, if nobody else has reserved since.
    pub fn stop(&mut self, node: usize) -> bool {
        let Node { disk, live, .. } = &mut self.nodes[node];
        for (tag, Stock { segment, origin, .. }) in
            live.iter().flat_map(|live| live.stocks.iter().enumerate())
        {
            if let (Some((identity, version)), Some(range)) = (origin, rest(&segment.shelves())) {
                let carry_over = CarryOver { version: *version, day: None, range };
                disk.carry_overs.insert((identity.clone(), tag), carry_over);
            }
        }
        self.crash(node)
    }

    /// Comes to these registries, from others or from its own rows: hands over what it knows of its tags.
    pub fn join(&mut self, node: usize, registries: Vec<usize>) {
        let disk = &self.nodes[node].disk;
        let tags = (0..TAGS.len()).filter(|tag| disk.highest(*tag) > 0);
        let highest = tags.map(|tag| (tag, disk.highest(tag))).collect();
        self.hand_over(node, Join { registries, done: Vec::new(), highest, attaches: false });
    }

    /// Attaches a column to a tag, which then goes on above its ids: some of them below what is in the buffers, some above.
    pub fn attach(&mut self, node: usize) -> bool {
        let tag = self.chance.below(TAGS.len());
        let above = self.chance.between(0, ATTACHED);
        let Node { disk, live: Some(live), .. } = &mut self.nodes[node] else { return false };
        if live.asking.is_some() {
            return false;
        }
        let highest = disk.highest(tag) + above;
        let registries: Vec<usize> = disk.sources.iter().map(|source| source.registry).collect();
        let join = Join { registries, done: Vec::new(), highest: vec![(tag, highest)], attaches: true };
        if join.registries.is_empty() {
            disk.rows.entry(tag).or_insert(Line::new(1)).raise(highest);
        }
        self.hand_over(node, join);
        true
    }

    fn attached(&mut self, node: usize, join: &Join) {
        for (tag, highest) in join.highest.iter().copied() {
            let Node { disk, live, .. } = &mut self.nodes[node];
            for registry in &join.done {
                disk.receive((registry.identity.clone(), tag), Received { max_id: highest, version: 0 });
            }
            if self.guards.keep(Guard::AttachDiscards) {
                for live in live.iter() {
                    live.stocks[tag].segment.clear();
                }
            }
            self.ledger.attach(node, tag, highest - ATTACHED + 1..=highest);
        }
    }

    fn hand_over(&mut self, node: usize, join: Join) {
        let Some(registry) = join.registries.get(join.done.len()).copied() else {
            return if join.attaches { self.attached(node, &join) } else { self.switch(node, join) };
        };
        let sources = &self.nodes[node].disk.sources;
        let seen = join.attaches.then(|| sources[join.done.len()].seen.clone());
        let raise = self.guards.keep(Guard::HandOverRaises);
        let json = |(tag, highest): &(Tag, i64)| {
            let row = Handed { tag: *tag, max_id: if raise { *highest } else { 0 } };
            RawValue::from_string(serde_json::to_string(&row).unwrap()).unwrap()
        };
        let rows = join.highest.iter().map(json).collect();
        let [index, of] =
            [join.done.len(), join.registries.len()].map(|number| u32::try_from(number).unwrap());
        let share = (of > 1).then_some(Share { index, of });
        self.ask(
            node,
            registry,
            seen,
            RequestBody::HandOver { rows, share },
            About::HandOver(join),
            5 * SECOND,
        );
    }

    /// Anything but a plain yes leaves the node where it was.
    pub fn handed_over(&mut self, node: usize, mut join: Join, answer: Option<Response>) {
        if let Some(Response { registry, said: ResponseBody::HandedOver(None), .. }) = answer {
            join.done.push(registry);
            self.hand_over(node, join);
        }
    }

    fn switch(&mut self, node: usize, join: Join) {
        if join.registries.iter().any(|registry| self.registries[*registry].is(Trouble::Dump)) {
            // It was replaced meanwhile, and is not raised yet.
            return;
        }
        self.note(|| format!("node {node} comes to {:?}", join.registries));
        let disk = &mut self.nodes[node].disk;
        // What it had of its own is not to be had from there, either.
        for (registry, (tag, max_id)) in
            join.done.iter().flat_map(|of| join.highest.iter().map(move |row| (of, *row)))
        {
            if self.guards.keep(Guard::HandOverNoted) {
                disk.receive((registry.identity.clone(), tag), Received { max_id, version: 0 });
            }
        }
        let sources = join.registries.into_iter().zip(join.done);
        disk.sources = sources.map(|(registry, seen)| Source { registry, seen }).collect();
        self.start(node);
    }

    /// Goes on by itself, above all that it received.
    pub fn leave(&mut self, node: usize) -> bool {
        let Node { disk, live, .. } = &mut self.nodes[node];
        if disk.sources.is_empty() || live.is_none() {
            return false;
        }
        disk.sources.clear();
        for tag in 0..TAGS.len() {
            let highest = disk.highest(tag);
            let line = disk.rows.entry(tag).or_insert(Line::new(1));
            if self.guards.keep(Guard::LeaveRaises) {
                line.raise(highest);
            }
        }
        self.start(node);
        true
    }
}

/// What both buffers have left, if that is one range.
fn rest(shelves: &Shelves) -> Option<Range> {
    let mut shelves = [shelves.current, shelves.next].into_iter().flatten().filter(|shelf| shelf.left() > 0);
    let shelf = shelves.next()?;
    let range = Range { first: shelf.range.at(shelf.used), count: shelf.left(), ..shelf.range };
    let Some(next) = shelves.next() else { return Some(range) };
    range.is_followed_by(&next.range).then_some(Range { count: range.count + next.range.count, ..range })
}
