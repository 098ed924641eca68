//! A node: its buffers, what is on its disk, and how it gets ids from its registries.

use super::change::Join;
use super::guards::Guard;
use super::registry::{Line, Rows};
use super::world::{Event, SECOND, TAGS, Tag, World};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::failover::{self, Health};
use snowflake_ids_core::reservation::{CarryOver, Outcome, Reserved, Share, Wish};
use snowflake_ids_core::segment::Segment;
use snowflake_ids_core::step::Pace;
use snowflake_ids_core::wire::{self, RequestBody, ReserveRequest, Response, ResponseBody};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// How long a segment should last.
const TARGET: Duration = Duration::from_secs(5);
/// How long an answer is waited for.
const TIMEOUT: u64 = 5 * SECOND;

#[derive(Default)]
pub struct Node {
    pub disk: Disk,
    pub live: Option<Live>,
    /// Of the last question.
    number: u64,
    /// When it issued the last id of each tag.
    pub last: [u64; TAGS.len()],
    /// An operator keeps it away from registries until then.
    pub alone_until: u64,
    /// Whether it is to use all registries when their rows are shares.
    pub wants_all: bool,
}

/// What survives.
#[derive(Default)]
pub struct Disk {
    /// Its own rows,
    pub rows: Rows,
    /// the registries that are used instead,
    pub sources: Vec<Source>,
    /// how far ids were received from each,
    pub received: BTreeMap<(String, Tag), Received>,
    /// and what a stop left over of them.
    pub carry_overs: BTreeMap<(String, Tag), CarryOver>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    pub registry: usize,
    pub seen: wire::Registry,
}

#[derive(Clone, Copy, Default)]
pub struct Received {
    pub max_id: i64,
    /// The row's version then.
    pub version: i64,
}

/// What a crash takes.
#[derive(Default)]
pub struct Live {
    pub stocks: [Stock; TAGS.len()],
    pub asking: Option<Asking>,
    /// The question before that.
    over: Option<Asking>,
    health: Vec<Health>,
    /// Which one was asked last.
    asked: usize,
    /// What is still to be written, where it is not written first.
    unwritten: Vec<((String, Tag), Received)>,
}

/// What there is of a tag.
#[derive(Default)]
pub struct Stock {
    pub segment: Segment,
    wanted: bool,
    /// Since when somebody waits.
    waiting: Option<u64>,
    pace: Pace,
    reserved_at: Option<u64>,
    /// Where its ids came from, and the row's version then.
    pub origin: Option<(String, i64)>,
}

/// A question that is not answered yet.
pub struct Asking {
    pub number: u64,
    pub about: About,
}

pub enum About {
    Ids { source: usize, tags: Vec<Tag> },
    HandOver(Join),
}

impl Live {
    pub fn new(sources: usize) -> Self {
        Self { health: vec![Health::default(); sources], ..Self::default() }
    }
}

impl Disk {
    /// The highest id of a tag that this node knows of.
    pub fn highest(&self, tag: Tag) -> i64 {
        let received =
            self.received.iter().filter(|((_, of), _)| *of == tag).map(|(_, received)| received.max_id);
        received.chain(self.rows.get(&tag).map(|line| line.definition.max_id)).max().unwrap_or(0)
    }

    pub fn receive(&mut self, from: (String, Tag), what: Received) {
        let received = self.received.entry(from).or_default();
        if what.max_id >= received.max_id {
            *received = what;
        }
    }
}

impl World {
    /// A session takes some ids, or waits for them.
    pub fn call(&mut self, node: usize) {
        let delay = self.between(20, 400);
        self.after(delay, Event::Call { node });
        let (tag, want) = (self.chance.below(TAGS.len()), 1 + self.chance.below(3));
        if self.nodes[node].live.is_some() {
            self.take(node, tag, NonZeroU32::new(u32::try_from(want).unwrap()).unwrap());
            self.refill(node);
        }
    }

    fn take(&mut self, node: usize, tag: Tag, want: NonZeroU32) {
        let now = self.now;
        let Node { disk, live: Some(live), last, .. } = &mut self.nodes[node] else { return };
        let stock = &mut live.stocks[tag];
        let Ok(taken) = stock.segment.take(0, want, &UnixMicros(0)) else {
            stock.wanted = true;
            stock.waiting.get_or_insert(now);
            return;
        };
        stock.wanted |= taken.prefetch;
        if let Some(since) = stock.waiting.take() {
            self.longest_wait = self.longest_wait.max(now - since);
        }
        last[tag] = now;
        let shared = !disk.sources.is_empty();
        for id in (0..taken.range.count).map(|offset| taken.range.at(offset)) {
            let what = || format!("{id} of {} at {now} by node {node}", TAGS[tag]);
            self.ledger.issue(node, tag, id, shared, what);
        }
    }

    /// Sees to it that wanted ids are on their way.
    pub fn refill(&mut self, node: usize) {
        let Node { disk, live: Some(live), .. } = &mut self.nodes[node] else { return };
        let local = disk.sources.is_empty();
        let locks = !local || self.guards.keep(Guard::HandOverLocks);
        if live.asking.is_some() && locks {
            return;
        }
        let has_room =
            |tag: &Tag| live.stocks[*tag].wanted && live.stocks[*tag].segment.shelves().have_room();
        let tags: Vec<Tag> = (0..TAGS.len()).filter(has_room).collect();
        if local {
            for tag in tags {
                self.reserve_locally(node, tag);
            }
        } else if !tags.is_empty() {
            self.ask_for(node, tags);
        }
    }

    fn reserve_locally(&mut self, node: usize, tag: Tag) {
        let wish = self.wish(node, tag, None);
        let version = self.version();
        let line = self.nodes[node].disk.rows.entry(tag).or_insert(Line::new(1));
        if let Outcome::Reserved(reserved) = line.reserve(&wish, version, 1, self.guards) {
            self.put_out(node, tag, &reserved, None);
        }
    }

    fn ask_for(&mut self, node: usize, tags: Vec<Tag>) {
        let now = Duration::from_millis(self.now);
        let live = self.nodes[node].live.as_ref().unwrap();
        let waited_for = live.stocks.iter().any(|stock| stock.waiting.is_some());
        let Some(source) = failover::order(&live.health, live.asked, now, waited_for).first().copied() else {
            let pause = failover::until_due(&live.health, now, waited_for).unwrap();
            return self.after(u64::try_from(pause.as_millis()).unwrap().max(1), Event::Refill { node });
        };
        let want = |tag: &Tag| {
            let wish = self.wish(node, *tag, Some(source));
            ReserveRequest { tag: TAGS[*tag].to_owned(), create: true, wish }
        };
        let ask = RequestBody::Reserve(tags.iter().map(want).collect());
        let sources = &self.nodes[node].disk.sources;
        let Source { registry, seen } = sources[source].clone();
        let timeout = if sources.len() > 1 { TIMEOUT / 5 } else { TIMEOUT };
        self.ask(node, registry, Some(seen), ask, About::Ids { source, tags }, timeout);
    }

    fn wish(&self, node: usize, tag: Tag, source: Option<usize>) -> Wish {
        let Node { disk, live, .. } = &self.nodes[node];
        let stock = &live.as_ref().unwrap().stocks[tag];
        let from = source.map(|source| (disk.sources[source].seen.identity.clone(), tag));
        let received = from.as_ref().and_then(|from| disk.received.get(from)).copied();
        let carry_over = from.as_ref().and_then(|from| disk.carry_overs.get(from)).filter(|carry_over| {
            let last = received.is_some_and(|received| received.version == carry_over.version);
            last || !self.guards.keep(Guard::CarryOverIsLast)
        });
        let of = u32::try_from(disk.sources.len()).unwrap();
        let share = source.map(|source| Share { index: u32::try_from(source).unwrap(), of });
        Wish {
            carry_over: carry_over.cloned(),
            pace: stock.pace,
            lasted: stock.reserved_at.map(|at| Duration::from_millis(self.now - at)),
            target: TARGET,
            hungry: stock.waiting.is_some(),
            prefetch: 50,
            floor: None,
            received: received
                .filter(|_| self.guards.keep(Guard::Received))
                .map(|received| (0, received.max_id)),
            share: share.filter(|_| of > 1 && self.guards.keep(Guard::Share)),
        }
    }

    /// Sends a question, and waits for the answer for so long.
    pub fn ask(
        &mut self,
        node: usize,
        registry: usize,
        seen: Option<wire::Registry>,
        ask: RequestBody,
        about: About,
        timeout: u64,
    ) {
        let Node { live: Some(live), number, .. } = &mut self.nodes[node] else { return };
        *number += 1;
        let number = *number;
        live.asking = Some(Asking { number, about });
        let row_timeout = Duration::from_millis(timeout / 2);
        let text = wire::Request { version: wire::VERSION, registry: seen, timeout: row_timeout, ask }
            .to_text()
            .unwrap();
        self.after(timeout, Event::Response { node, number, text: None });
        self.travel(&Event::Question { node, number, registry, text });
    }

    /// An answer comes; None: the registry refuses, or it is not waited for any longer.
    pub fn answered(&mut self, node: usize, number: u64, text: Option<String>) {
        let Some(live) = &mut self.nodes[node].live else { return };
        let is_this = |asking: &mut Asking| asking.number == number;
        let answer = text.map(|text| Response::from_text(&text).unwrap());
        match live.asking.take_if(is_this) {
            Some(Asking { about: About::HandOver(join), .. }) => self.handed_over(node, join, answer),
            Some(asking) => {
                self.got_ids(node, &asking.about, answer);
                self.nodes[node].live.as_mut().unwrap().over = Some(asking);
            }
            None if answer.is_some() && !self.guards.keep(Guard::AnswerOnce) => {
                if let Some(over) = live.over.take_if(is_this) {
                    self.got_ids(node, &over.about, answer);
                }
            }
            None => {}
        }
        self.refill(node);
    }

    fn got_ids(&mut self, node: usize, about: &About, answer: Option<Response>) {
        let About::Ids { source, tags } = about else { return };
        let mut good = false;
        if let Some(Response { registry, said: ResponseBody::Reserved(outcomes), .. }) = answer {
            good = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Reserved(_)));
            let Some(source) = self.nodes[node].disk.sources.get_mut(*source) else { return };
            source.seen = registry.clone();
            for (tag, outcome) in tags.iter().zip(outcomes) {
                if let Outcome::Reserved(reserved) = outcome {
                    self.put_out(node, *tag, &reserved, Some(&registry.identity));
                }
            }
        }
        let live = self.nodes[node].live.as_mut().unwrap();
        live.asked = *source;
        let Some(health) = live.health.get_mut(*source) else { return };
        let failed = Health { failures: health.failures + 1, failed_at: Duration::from_millis(self.now) };
        *health = if good { Health::default() } else { failed };
    }

    /// Notes what was received, then publishes it; who waits is served.
    fn put_out(&mut self, node: usize, tag: Tag, reserved: &Reserved, identity: Option<&String>) {
        let Node { disk, live: Some(live), .. } = &mut self.nodes[node] else { return };
        if let Some(identity) = identity {
            let what = Received { max_id: reserved.reached().1, version: reserved.version };
            live.unwritten.push(((identity.clone(), tag), what));
            let late = usize::from(!self.guards.keep(Guard::ReceivedFirst));
            let due = live.unwritten.len().saturating_sub(late);
            live.unwritten.drain(..due).for_each(|(from, what)| disk.receive(from, what));
        }
        let stock = &mut live.stocks[tag];
        if stock.segment.publish(&reserved.supply, stock.segment.stamp()) {
            stock.wanted = false;
            stock.pace = reserved.pace;
            stock.reserved_at = Some(self.now);
            stock.origin = identity.map(|identity| (identity.clone(), reserved.version));
        }
        if stock.waiting.is_some() {
            self.take(node, tag, NonZeroU32::MIN);
        }
    }
}
