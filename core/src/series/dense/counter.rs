//! What a key is called in memory, and what is known of it there.

use crate::guard::{Guard, holds};
use crate::series::key::Key;

/// The most bytes of a text that is a key in memory.
pub const SHORT_TEXT_BYTES: usize = 80;

/// A key in memory of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortKey {
    /// A number.
    Bigint(i64),
    /// A UUID.
    Uuid([u8; 16]),
    /// A text that is short enough.
    Text(ShortText),
}

/// The bytes of a text, at most [`SHORT_TEXT_BYTES`]; those behind them are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortText {
    len: u8,
    bytes: [u8; SHORT_TEXT_BYTES],
}

const _: () = assert!(SHORT_TEXT_BYTES <= u8::MAX as usize);

impl ShortText {
    /// A text of these bytes; None if they are too many.
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; SHORT_TEXT_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self { len: u8::try_from(text.len()).ok()?, bytes })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

impl ShortKey {
    /// A key that has room; None for a longer text, which has no counter in memory.
    pub fn of(key: &Key) -> Option<Self> {
        Some(match key {
            Key::Bigint(number) => Self::Bigint(*number),
            Key::Uuid(uuid) => Self::Uuid(uuid.to_be_bytes()),
            Key::Text(text) => Self::Text(ShortText::new(text)?),
        })
    }

    /// The same key on the heap.
    pub fn to_key(&self) -> Key {
        match self {
            Self::Bigint(number) => Key::Bigint(*number),
            Self::Uuid(uuid) => Key::Uuid(u128::from_be_bytes(*uuid)),
            Self::Text(text) => Key::Text(text.as_bytes().into()),
        }
    }
}

/// What a counter is known by on a server with many databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterKey {
    /// Keyed with the server's secret, so that nobody can choose keys that collide.
    hash: u64,
    /// The oid of the database.
    pub database: u32,
    /// The oid of the table of series: another one after the extension was created anew.
    pub source: u32,
    /// The series' id.
    pub series: i64,
    /// The key.
    pub key: ShortKey,
}

/// What the keys of a series have in common, hashed with the server's secret, which is the same in all its processes as long as its
/// shared memory lives.
#[derive(Clone, Copy, Debug)]
pub struct CounterKeys {
    secret: u64,
    hash: u64,
    database: u32,
    source: u32,
    series: i64,
}

impl CounterKeys {
    /// The keys of a series.
    pub fn new(secret: u64, database: u32, source: u32, series: i64) -> Self {
        let table = u64::from(database) << 32 | u64::from(source);
        let hash = fold(fold(secret, table), series.cast_unsigned());
        Self { secret, hash, database, source, series }
    }

    /// One of them.
    #[inline]
    pub fn key(&self, key: ShortKey) -> CounterKey {
        let Self { secret, hash, database, source, series } = *self;
        let hash = match &key {
            ShortKey::Bigint(number) => fold(hash, number.cast_unsigned()),
            ShortKey::Uuid(uuid) => fold_bytes(hash, uuid),
            ShortKey::Text(text) => fold_bytes(hash, text.as_bytes()),
        };
        // What goes in last must reach all bits.
        CounterKey { hash: fold(hash, secret.rotate_left(32)), database, source, series, key }
    }
}

impl CounterKey {
    /// A key of a series: [`CounterKeys`].
    pub fn new(secret: u64, database: u32, source: u32, series: i64, key: ShortKey) -> Self {
        CounterKeys::new(secret, database, source, series).key(key)
    }

    /// The partition that it belongs to, of so many.
    #[inline]
    pub fn partition(&self, of: usize) -> usize {
        // The high half: the low one is the place in the partition's index. A product, as a remainder takes as long as all else here.
        usize::try_from((self.hash >> 32).saturating_mul(of as u64) >> 32).unwrap_or(0)
    }

    #[inline]
    pub(super) const fn hash(&self) -> u64 {
        self.hash
    }

    /// That of a free place.
    pub(super) const NONE: Self =
        Self { hash: 0, database: 0, source: 0, series: 0, key: ShortKey::Bigint(0) };
}

/// Mixes a word into a hash: the two halves of a product, as `wyhash` does.
#[inline]
fn fold(hash: u64, word: u64) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xe703_7ed1_a0b4_28db;
    let product = u128::from(hash ^ A).wrapping_mul(u128::from(word ^ B ^ hash.rotate_left(29)));
    let (low, high) = (product & u128::from(u64::MAX), product >> 64);
    u64::try_from(low ^ high).unwrap_or_default()
}

fn fold_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = fold(hash, u64::from_le_bytes(*word));
    }
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    fold(fold(hash, last), bytes.len() as u64)
}

/// What a session took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The number.
    pub number: i64,
    /// The first day of the period that it is of: never before the one that was asked for.
    pub day: i32,
    /// The worker of the database is to be woken: it is time to reserve more.
    pub ahead: bool,
}

/// How far a counter has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The highest number that was handed out, or `start - 1`.
    pub number: i64,
    /// The last that was reserved.
    pub limit: i64,
    /// The first day of their period; 0 without periods.
    pub day: i32,
}

impl Given {
    /// The highest number that may be in use, where the key's row says `last`, of a period. Where the row says something else than
    /// what was reserved last, it was changed by hand, or there is a reservation that is not handed out yet: then it is right.
    #[must_use]
    pub fn reached(self, last: i64, day: i32) -> i64 {
        let is_as_reserved = self.limit == last && self.day == day;
        if is_as_reserved || !holds(Guard::SeriesReached) { self.number } else { last }
    }
}

/// What is left of a counter: for the view, and for the file at a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whose it is.
    pub key: CounterKey,
    /// The first day of its period.
    pub day: i32,
    /// The highest number that was handed out, or the one before the first that can be,
    pub given: i64,
    /// and the last one that can be: what its row says.
    pub limit: i64,
}

/// What a place is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing.
    Free,
    /// A worker is about to reserve numbers for it.
    Held,
    /// It gives numbers.
    Live,
    /// It is to be written back, unless it is used before.
    Leaving,
    /// Left over by the last stop: its row is looked at before it gives numbers.
    Unproven,
    /// It is being written back, or was: whether the row says so is not known before the transaction's end.
    Departing,
}

/// One place of a partition.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub(super) key: CounterKey,
    /// The highest number that was handed out, or the one before the first that can be: above the last there may be none.
    pub(super) given: i64,
    /// The last that is reserved.
    pub(super) last: i64,
    /// From which number on it is time to reserve more.
    pub(super) low: i64,
    /// When numbers were reserved last, in milliseconds of uptime.
    pub(super) since: u64,
    pub(super) day: i32,
    /// How many were reserved ahead; 0: none were yet.
    pub(super) step: u32,
    /// Of a free place: the next such place.
    pub(super) free: u32,
    pub(super) state: State,
    /// What it was before it was to leave.
    pub(super) was: State,
    /// Whether it was used since the clock's hand came by.
    pub(super) referenced: bool,
    /// Whether it is in the list of those that want more.
    pub(super) wants: bool,
    /// Whether a worker reserves numbers for it now.
    pub(super) busy: bool,
}

impl Counter {
    /// A free place.
    pub const EMPTY: Self = Self {
        key: CounterKey::NONE,
        given: 0,
        last: 0,
        low: 0,
        since: 0,
        day: 0,
        step: 0,
        free: u32::MAX,
        state: State::Free,
        was: State::Free,
        referenced: false,
        wants: false,
        busy: false,
    };

    /// Whether sessions may take numbers of it.
    pub(super) fn gives(&self) -> bool {
        match self.state {
            State::Live => true,
            // It is used, so it stays.
            State::Leaving => matches!(self.was, State::Live),
            State::Departing => !holds(Guard::SeriesDeparts),
            State::Free | State::Held | State::Unproven => false,
        }
    }

    /// Whether its row is to be looked at before it gives numbers, which nobody does yet.
    pub(super) fn is_unproven(&self) -> bool {
        self.state == State::Unproven || (self.state == State::Leaving && self.was == State::Unproven)
    }

    /// Whether it has numbers.
    pub(super) const fn has_any(&self) -> bool {
        self.given < self.last
    }

    /// It does not leave; the clock's hand passes it by once.
    pub(super) const fn stay(&mut self) {
        self.state = self.was;
        self.referenced = true;
    }

    /// What is left of it.
    pub(super) const fn left(&self) -> Left {
        Left { key: self.key, day: self.day, given: self.given, limit: self.last }
    }
}
