//! The server: its memory, its rows, and what sessions and others do.

use super::chance::Chance;
use super::host::round;
use super::ledger::{Id, Ledger};
use snowflake_ids_core::index::index_len;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{
    Answer, Asked, Counter, CounterKey, Definition, Left, Partition, Request, Requests, RowKey,
    SHORT_TEXT_BYTES, ShortKey, Ticket,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

pub const SECRET: u64 = 0x1234_5678_9abc_def1;
pub const SOURCE: u32 = 7;
const DATABASES: [u32; 2] = [1, 2];
const START: i64 = 1;
const SESSIONS: usize = 7;

/// The row of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub last: i64,
    pub day: i32,
}

/// A call that waits.
struct Call {
    ticket: Ticket,
    id: Id,
    day: i32,
    /// What the key was set to when it began.
    floors: Vec<(i32, i64)>,
}

/// A transaction that has set a key, or has its row locked.
struct Setter {
    number: u64,
    id: Id,
    to: Option<Row>,
}

/// What is shared by processes, in memory.
type Shared<T> = Rc<RefCell<T>>;

pub struct World {
    pub chance: Chance,
    /// Whether nothing happens that may leave a gap.
    pub calm: bool,
    /// Whether nothing happens besides what is asked for.
    pub quiet: bool,
    pub now: Duration,
    today: i32,
    /// Which start of the server it is.
    pub life: u64,
    pub rows: BTreeMap<Id, Row>,
    /// Which transaction has which key locked.
    pub locks: BTreeMap<Id, u64>,
    /// Which transaction keeps which series of a database from being dropped.
    pub kept: BTreeSet<(u64, u32, i64)>,
    numbers: u64,
    /// The series: dated ones are odd.
    series: BTreeMap<(u32, i64), Definition>,
    pub partitions: Vec<Shared<Partition<'static>>>,
    pub requests: Shared<Requests<'static>>,
    calls: Vec<Option<Call>>,
    setter: Option<Setter>,
    /// Databases whose workers run, those that have begun, and their transactions.
    pub busy: BTreeSet<u32>,
    pub begun: BTreeSet<u32>,
    pub transactions: BTreeMap<u32, u64>,
    /// Which rows the last transaction of each database's worker wrote something back to.
    pub lowered: BTreeMap<u32, Vec<Id>>,
    ledger: Ledger,
    /// Rows that somebody has corrected.
    pub corrected: BTreeSet<Id>,
    story: bool,
}

/// Memory of a server that starts.
fn memory() -> (Vec<Shared<Partition<'static>>>, Shared<Requests<'static>>) {
    const PLACES: usize = 3;
    let partition = || {
        let counters = Box::leak(vec![Counter::EMPTY; PLACES].into_boxed_slice());
        let index = Box::leak(vec![0; index_len(PLACES)].into_boxed_slice());
        Rc::new(RefCell::new(Partition::new(counters, index)))
    };
    let cells = Box::leak(vec![Request::EMPTY; SESSIONS].into_boxed_slice());
    (vec![partition(), partition()], Rc::new(RefCell::new(Requests::new(cells))))
}

impl World {
    fn new(seed: u64, story: bool) -> Self {
        let (partitions, requests) = memory();
        let definition = Definition { start: START, max_value: 1_000, step: 2, max_step: 8 };
        let mut series = BTreeMap::new();
        for database in DATABASES {
            series.insert((database, 2), definition);
            series.insert((database, 3), definition);
            series.insert((database, 4), Definition { max_value: 9, step: 1, max_step: 4, ..definition });
        }
        Self {
            chance: Chance::new(seed),
            calm: seed.is_multiple_of(2),
            quiet: false,
            now: Duration::ZERO,
            today: 1,
            life: 0,
            rows: BTreeMap::new(),
            locks: BTreeMap::new(),
            kept: BTreeSet::new(),
            numbers: 10,
            series,
            partitions,
            requests,
            calls: (0..SESSIONS).map(|_| None).collect(),
            setter: None,
            busy: BTreeSet::new(),
            begun: BTreeSet::new(),
            transactions: BTreeMap::new(),
            lowered: BTreeMap::new(),
            ledger: Ledger::default(),
            corrected: BTreeSet::new(),
            story,
        }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.story {
            println!("{}", what());
        }
    }

    /// A number that was not drawn before.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn definition(&self, database: u32, series: i64) -> Option<Definition> {
        self.series.get(&(database, series)).copied()
    }

    /// Locks a key for a transaction, unless another one has it locked.
    pub fn lock(&mut self, id: &Id, transaction: u64) -> bool {
        *self.locks.entry(id.clone()).or_insert(transaction) == transaction
    }

    /// What a worker's transaction changed is durable.
    pub fn commit(&mut self, database: u32, changed: &mut BTreeMap<Id, Row>) {
        let is_lower = |id: &&Id| self.rows.get(*id).is_some_and(|row| changed[*id].last < row.last);
        self.lowered.insert(database, changed.keys().filter(is_lower).cloned().collect());
        self.rows.append(changed);
    }

    pub fn unlock(&mut self, transaction: u64) {
        self.locks.retain(|_, by| *by != transaction);
        self.kept.retain(|(by, _, _)| *by != transaction);
    }

    fn an_id(&self, database: u32) -> Id {
        let all: Vec<i64> = self.series.keys().filter(|(of, _)| *of == database).map(|(_, id)| *id).collect();
        let key = match self.chance.below(6) {
            0 => long_key(),
            1 => Key::Text(b"short".as_slice().into()),
            2 => Key::Uuid(5),
            _ => Key::Bigint(self.chance.between(0, 3)),
        };
        (database, RowKey { series: self.chance.one_of(&all), key })
    }

    /// The day on which a session calls: clocks differ a little.
    fn day(&self, series: i64) -> i32 {
        match series % 2 {
            0 => 0,
            _ => self.today - i32::from(self.chance.once_in(6)),
        }
    }

    fn partition(&self, key: &CounterKey) -> Shared<Partition<'static>> {
        self.partitions[key.partition(self.partitions.len())].clone()
    }

    /// A session takes a number, or asks for one.
    fn call(&mut self, session: usize) {
        let id = self.an_id(DATABASES[session % 2]);
        let (database, RowKey { series, key }) = (id.0, &id.1);
        let day = self.day(*series);
        let floors = self.ledger.floors(&id);
        let Some(definition) = self.definition(database, *series) else { return };
        let max_value = definition.max_value;
        if let Some(place) = counter_key(&id)
            && let Ok(taken) = self.partition(&place).borrow_mut().take(&place, day, max_value)
        {
            self.tell(|| format!("session {session} takes {} of day {} of {id:?}", taken.number, taken.day));
            self.ledger.give(&id, day, &floors, taken.day, taken.number);
            return;
        }
        let asked = Asked { database, source: SOURCE, series: *series, key, day, max_value };
        let ticket = self.requests.borrow_mut().ask(session, &asked).unwrap();
        self.tell(|| format!("session {session} asks for {id:?} on day {day}"));
        self.calls[session] = Some(Call { ticket, id, day, floors });
    }

    /// A session looks for its answer; it may be cancelled.
    fn wait(&mut self, session: usize) {
        let Some(call) = &self.calls[session] else { return };
        let answer = self.requests.borrow_mut().answer_to(session, call.ticket);
        match answer {
            Some(Answer::Number { number, day }) => {
                self.tell(|| format!("session {session} gets {number} of day {day} of {:?}", call.id));
                self.ledger.give(&call.id, call.day, &call.floors, day, number);
            }
            Some(Answer::Exhausted) => {
                self.tell(|| format!("{:?} has no number left", call.id));
                self.ledger.exhausted(call.id.clone());
            }
            Some(Answer::Unknown) if self.series.contains_key(&(call.id.0, call.id.1.series)) => {
                self.ledger.fault(&format!("{:?} was said to be unknown", call.id));
            }
            Some(Answer::Unknown) => {}
            None if !self.quiet && !self.calm && self.chance.once_in(12) => {
                self.tell(|| format!("session {session} is cancelled"));
                self.requests.borrow_mut().withdraw(session);
            }
            Some(Answer::Refused(why)) => self.ledger.fault(&format!("{why:?} where there is no registry")),
            None => return,
        }
        self.calls[session] = None;
    }

    /// A transaction locks a row; it may set it, or change it by hand.
    fn begin_setter(&mut self) {
        let id = self.an_id(self.chance.one_of(&DATABASES));
        let number = self.number();
        if self.setter.is_some() || !self.rows.contains_key(&id) || !self.lock(&id, number) {
            return;
        }
        let to = if self.calm { None } else { self.set(&id) };
        self.tell(|| format!("{id:?} is locked, to be set to {to:?}"));
        self.setter = Some(Setter { number, id, to });
    }

    /// What a key is set to, with its row locked.
    fn set(&self, id: &Id) -> Option<Row> {
        let row = self.rows.get(id).copied()?;
        let place = counter_key(id);
        let given = place.and_then(|place| self.partition(&place).borrow_mut().void(&place));
        let last = given.map_or(row.last, |given| given.reached(row.last, row.day));
        let today = if id.1.series % 2 == 0 { 0 } else { self.today };
        let day = today.max(row.day);
        let lowest = if row.day == day { last } else { START - 1 };
        let highest = self.definition(id.0, id.1.series)?.max_value;
        let value = if self.chance.once_in(3) { row.last } else { self.chance.between(lowest, lowest + 5) };
        Some(Row { last: value.max(lowest).min(highest.max(lowest)), day })
    }

    fn end_setter(&mut self) {
        let Some(Setter { number, id, to }) = self.setter.take() else { return };
        if let Some(row) = to.filter(|_| !self.chance.once_in(3)) {
            self.tell(|| format!("{id:?} is set to {row:?}"));
            self.rows.insert(id.clone(), row);
            self.ledger.set(id, row.day, row.last);
        }
        self.unlock(number);
    }

    /// Somebody changes a row by hand, and uses the numbers.
    fn by_hand(&mut self) {
        let id = self.an_id(self.chance.one_of(&DATABASES));
        // Corrected and then changed to just what it was, it could not be told.
        if self.locks.contains_key(&id) || self.corrected.contains(&id) {
            return;
        }
        let more = self.chance.between(1, 4);
        let Some(row) = self.rows.get_mut(&id) else { return };
        let first = row.last + 1;
        row.last += more;
        for number in first..first + more {
            self.ledger.note(&id, row.day, number);
        }
        self.tell(|| format!("{more} numbers from {first} on of {id:?} are used by hand"));
    }

    /// Somebody has the row of a key say what is in use.
    fn correct(&mut self) {
        let id = self.an_id(self.chance.one_of(&DATABASES));
        let Some(row) = self.rows.get_mut(&id) else { return };
        let floor = self.ledger.floors(&id).into_iter().find(|(day, _)| *day == row.day);
        let last = self.ledger.last(&id, row.day).unwrap_or(START - 1);
        row.last = floor.map_or(last, |(_, floor)| last.max(floor));
        self.tell(|| format!("{id:?} is corrected"));
        self.corrected.insert(id);
    }

    /// A series is dropped, and created again.
    fn drop_series(&mut self) {
        let all: Vec<_> = self.series.keys().copied().collect();
        let (database, series) = self.chance.one_of(&all);
        let is_of = |id: &Id| id.0 == database && id.1.series == series;
        let is_kept = |(_, of, id): &(u64, u32, i64)| (*of, *id) == (database, series);
        if self.locks.keys().any(is_of) || self.kept.iter().any(is_kept) {
            return;
        }
        self.rows.retain(|id, _| !is_of(id));
        let next = (self.number() * 2).cast_signed() + series % 2;
        let definition = self.series.remove(&(database, series)).unwrap();
        self.series.insert((database, next), definition);
        self.tell(|| format!("series {series} of {database} is dropped, {next} is created"));
    }

    /// The server stops in good order; the numbers that are left.
    fn stop(&mut self) -> Vec<Left> {
        self.end_setter();
        let left = self.partitions.iter().flat_map(|partition| partition.borrow().iter().collect::<Vec<_>>());
        let left = left.collect();
        self.crash();
        left
    }

    fn start(&mut self, left: &[Left]) {
        for left in left {
            let key = left.key;
            let key = CounterKey::new(SECRET, key.database, key.source, key.series, key.key);
            self.tell(|| format!("left over: {} to {} of {:?}", left.given + 1, left.limit, key.key));
            self.partition(&key).borrow_mut().restore(&Left { key, ..*left });
        }
    }

    /// All that is in memory is lost.
    fn crash(&mut self) {
        self.tell(|| "the server stops".into());
        self.life += 1;
        (self.partitions, self.requests) = memory();
        self.calls.iter_mut().for_each(|call| *call = None);
        self.locks.clear();
        self.kept.clear();
        self.setter = None;
        self.begun.clear();
        self.transactions.clear();
    }

    fn has_calls(&self) -> bool {
        self.calls.iter().any(Option::is_some)
    }

    /// What keys have left is in their rows.
    fn check_rows(&mut self) {
        for (id, row) in &self.rows {
            let last = self.ledger.last(id, row.day).unwrap_or(START - 1);
            if last != row.last && self.ledger.wrong.is_none() {
                self.ledger.wrong = Some(format!("the row of {id:?} says {row:?} after {last}"));
            }
        }
    }
}

/// A key that has no counter in memory.
fn long_key() -> Key {
    Key::Text([b'k'; SHORT_TEXT_BYTES + 1].as_slice().into())
}

/// What a key is in memory.
fn counter_key(id: &Id) -> Option<CounterKey> {
    Some(CounterKey::new(SECRET, id.0, SOURCE, id.1.series, ShortKey::of(&id.1.key)?))
}

/// Something happens, also in the midst of a worker's round.
pub fn act(world: &RefCell<World>) {
    let what = world.borrow().chance.below(100);
    let mut at = world.borrow_mut();
    match what {
        0..72 => {
            let session = at.chance.below(SESSIONS);
            if at.calls[session].is_some() { at.wait(session) } else { at.call(session) }
        }
        72..78 => at.begin_setter(),
        78..84 => at.end_setter(),
        84..86 => at.today += 1,
        86..90 => {
            let millis = at.chance.one_of(&[1, 100, 2_000, 70_000]);
            at.now += Duration::from_millis(millis);
        }
        90..97 => {
            let database = at.chance.one_of(&DATABASES);
            drop(at);
            round(world, database);
        }
        97 if !at.calm => at.by_hand(),
        98 if !at.calm && at.chance.once_in(2) => at.drop_series(),
        99 if !at.calm && at.chance.once_in(10) => at.crash(),
        _ => {}
    }
}

/// A restart in good order: no worker runs.
fn restart(world: &RefCell<World>) {
    let mut world = world.borrow_mut();
    if world.calm && world.has_calls() {
        return;
    }
    let left = world.stop();
    if !world.calm {
        // Without the library.
        for _ in 0..world.chance.below(3) {
            world.by_hand();
            world.correct();
        }
        if world.chance.once_in(4) {
            return;
        }
    }
    world.start(&left);
}

/// All calls are answered.
fn settle(world: &RefCell<World>) {
    for _ in 0..100 {
        for database in DATABASES {
            round(world, database);
        }
        let mut world = world.borrow_mut();
        (0..SESSIONS).for_each(|session| world.wait(session));
        if !world.has_calls() {
            return;
        }
    }
    world.borrow_mut().ledger.fault("calls are not answered");
}

/// What went wrong in the run of a seed.
pub fn run(seed: u64, story: bool) -> Option<String> {
    let world = RefCell::new(World::new(seed, story));
    for _ in 0..120 {
        act(&world);
        if world.borrow().chance.once_in(3) {
            let database = world.borrow().chance.one_of(&DATABASES);
            round(&world, database);
        }
        if world.borrow().chance.once_in(25) {
            settle_for_restart(&world);
            restart(&world);
        }
    }
    world.borrow_mut().end_setter();
    world.borrow_mut().quiet = true;
    settle(&world);
    for _ in 0..10 {
        for partition in &world.borrow().partitions {
            partition.borrow_mut().evict(100);
        }
        for database in DATABASES {
            round(&world, database);
        }
    }
    let mut world = world.borrow_mut();
    if world.calm {
        let series = world.series.clone();
        world.ledger.check_complete(START, |id| series[&(id.0, id.1.series)].max_value);
        world.check_rows();
    }
    world.ledger.wrong.take()
}

/// Sometimes all calls have their answers before a restart.
fn settle_for_restart(world: &RefCell<World>) {
    if world.borrow().chance.once_in(2) {
        world.borrow_mut().end_setter();
        world.borrow_mut().quiet = true;
        settle(world);
        world.borrow_mut().quiet = false;
    }
}
