//! Places for the layouts of named generators, beside the server's own: each has a generator, and serves one layout at a
//! time.
//!
//! Which one that is changes under the state lock, while the place's generator is closed, and its *incarnation* with it.
//! A session knows the incarnation in which the place was its layout's. It reads it before and after it takes: where it is
//! still the same, what was taken is of that layout; else it is thrown away, and the session asks for a place again.

use super::clock::tick_of;
use super::counter::Counter;
use super::error::{IssuerError, NoRoom};
use super::host::Host;
use super::issuing::{Issuer, Issuing};
use super::shared::Shared;
use crate::id::Node;
use crate::layout::{Field, Layout};
use crate::position::Position;
use crate::snowflake::Generator;
use crate::state::{Identity, State};
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// How many places there can be.
pub const MAX_PLACES: usize = 64;

/// How many there are unless it is set.
pub const DEFAULT_PLACES: usize = 16;

/// How long nothing was taken at a place that is given to another layout.
const IDLE: Duration = Duration::from_mins(1);

/// A place in shared memory.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C, align(64)))]
pub struct Place {
    /// Hands out positions of the layout that has the place.
    pub generator: Generator,
    /// Changes with the layout, while the generator is closed.
    pub incarnation: AtomicU64,
}

/// What a place is used for.
#[derive(Debug, Default)]
pub struct Occupancy {
    /// The layout that has it; None: it is free.
    pub layout: Option<Layout>,
    /// The node whose term its generator has begun; None while it is closed.
    pub node: Option<Node>,
    /// When it got the place, in microseconds since the machine's start.
    seated: u64,
    /// What it would give next when that was last looked at and had changed, and when that was.
    seen: (Position, u64),
}

/// Where a layout has its ids from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// It is the server's own layout.
    Own,
    /// A place, as long as this is its incarnation.
    Place {
        /// Which one.
        index: usize,
        /// Its incarnation.
        incarnation: u64,
    },
}

/// Where a session takes positions from.
pub trait Source {
    /// Their layout.
    fn layout(&self) -> &Layout;
    /// What hands them out.
    fn generator(&self) -> &Generator;
    /// Whether that still hands out positions of the layout.
    fn is_held(&self) -> bool;
}

/// The server's own layout, which never changes while it runs.
impl Source for Shared {
    #[inline]
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn generator(&self) -> &Generator {
        &self.generator
    }

    #[inline]
    fn is_held(&self) -> bool {
        true
    }
}

/// A layout at its seat.
#[derive(Clone, Copy, Debug)]
pub struct Seated<'a> {
    layout: &'a Layout,
    generator: &'a Generator,
    /// The place's incarnation, and what it is to be.
    place: Option<(&'a AtomicU64, u64)>,
}

impl<'a> Seated<'a> {
    /// A layout at a place.
    pub fn at(place: &'a Place, incarnation: u64, layout: &'a Layout) -> Self {
        Self { layout, generator: &place.generator, place: Some((&place.incarnation, incarnation)) }
    }
}

impl Source for Seated<'_> {
    #[inline]
    fn layout(&self) -> &Layout {
        self.layout
    }

    #[inline]
    fn generator(&self) -> &Generator {
        self.generator
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.place.is_none_or(|(incarnation, mine)| incarnation.load(Ordering::Acquire) == mine)
    }
}

impl Place {
    /// Gives it to another layout, while its generator is closed.
    pub fn reuse(&self) {
        self.generator.forget();
        self.incarnation.fetch_add(1, Ordering::AcqRel);
    }
}

impl Shared {
    /// A layout at its seat, which was found for this very layout.
    #[inline]
    pub fn seated<'a>(&'a self, seat: Seat, layout: &'a Layout) -> Seated<'a> {
        match seat {
            Seat::Place { index, incarnation } if index < MAX_PLACES => {
                Seated::at(&self.places[index], incarnation, layout)
            }
            _ => Seated { layout, generator: &self.generator, place: None },
        }
    }

    /// Whether a seat still is the layout's for which it was found.
    pub fn is_held(&self, seat: Seat) -> bool {
        self.seated(seat, &self.layout).is_held()
    }

    /// A number that changes with each step back of the clock and each change of a term, in whatever layout.
    pub fn era(&self) -> u64 {
        let eras = self.places.iter().map(|place| place.generator.era());
        eras.fold(self.generator.era(), u64::wrapping_add)
    }

    /// Whether a term has begun, in whatever layout.
    pub fn is_issuing(&self) -> bool {
        self.generators().any(|generator| generator.limit() > Position::ZERO)
    }

    /// All generators.
    pub fn generators(&self) -> impl Iterator<Item = &Generator> {
        std::iter::once(&self.generator).chain(self.places.iter().map(|place| &place.generator))
    }
}

impl<H: Host> Issuer<'_, H> {
    /// Finds a place for a layout: its own, a free one, or one at which nothing was taken for a while, whose mark is settled
    /// first. Ids flow from it once there is a term ([`Issuer::provide_in`]).
    ///
    /// # Errors
    /// [`IssuerError`]: all are in use, or the node does not fit the layout.
    pub fn seat(&self, layout: &Layout) -> Result<Seat, IssuerError> {
        if *layout == self.shared.layout {
            return Ok(Seat::Own);
        }
        self.seat_in(&mut self.host.lock(), layout)
    }

    /// The same, under the state lock.
    pub(super) fn seat_in(&self, issuing: &mut Issuing, layout: &Layout) -> Result<Seat, IssuerError> {
        if *layout == self.shared.layout {
            return Ok(Seat::Own);
        }
        let places = &issuing.places[..self.shared.max_places.min(MAX_PLACES)];
        if let Some(index) = places.iter().position(|place| place.layout == Some(*layout)) {
            return Ok(self.seat_at(index));
        }
        let mut state = self.open(issuing)?;
        self.check_room(&mut state, layout)?;
        let index = match issuing.places[..self.shared.max_places.min(MAX_PLACES)]
            .iter()
            .position(|place| place.layout.is_none())
        {
            Some(free) => free,
            None => self.make_room(issuing, &mut state)?,
        };
        let (place, now) = (&self.shared.places[index], self.host.reading());
        debug_assert!(!place.generator.is_open(), "a place changes hands while its generator is open");
        place.reuse();
        place.generator.resume(tick_of(layout, state.seen), tick_of(layout, now.wall));
        issuing.places[index] = Occupancy {
            layout: Some(*layout),
            node: None,
            seated: now.since_boot,
            seen: (place.generator.next(), now.since_boot),
        };
        Ok(self.seat_at(index))
    }

    fn seat_at(&self, index: usize) -> Seat {
        let incarnation = self.shared.places[index].incarnation.load(Ordering::Acquire);
        Seat::Place { index, incarnation }
    }

    /// What issues at a seat; None where that is another layout's by now. Under the state lock.
    pub(super) fn counter_at(&self, issuing: &Issuing, seat: Seat) -> Option<Counter<'_>> {
        match seat {
            Seat::Own => Some(self.own_counter()),
            Seat::Place { index, .. } => {
                let layout = issuing.places.get(index)?.layout?;
                (self.seat_at(index) == seat).then(|| self.counter_of(index, layout))
            }
        }
    }

    /// Whether the node fits a layout. Where worker ids are leased, that is noted, so that the next one does.
    pub(super) fn check_room(&self, state: &mut State, layout: &Layout) -> Result<(), IssuerError> {
        let (datacenter, leased) = match self.shared.identity {
            Identity::Fixed { datacenter, .. } => (datacenter, false),
            Identity::Leased { datacenter } => (datacenter, true),
        };
        let no_room = |field, value| NoRoom { layout: *layout, field, value, leased };
        if layout.check(Field::Datacenter, datacenter.into()).is_err() {
            return Err(no_room(Field::Datacenter, datacenter).into());
        }
        let worker = state.node.map_or(0, |node| node.worker);
        if layout.check(Field::Worker, worker.into()).is_ok() {
            return Ok(());
        }
        // Any role may call again and again.
        if leased && *layout != self.shared.layout && state.want(layout, self.believed_now()) {
            self.write(state)?;
        }
        Err(no_room(Field::Worker, worker).into())
    }

    /// Notes at which places something was taken since that was looked at last.
    pub(super) fn look_at_places(&self, issuing: &mut Issuing) {
        let now = self.host.reading().since_boot;
        for (place, occupancy) in self.shared.places.iter().zip(&mut issuing.places) {
            let next = place.generator.next();
            if occupancy.layout.is_some() && next != occupancy.seen.0 {
                occupancy.seen = (next, now);
            }
        }
    }

    /// Ends the term at the place where nothing was taken for the longest, if that is long enough.
    fn make_room(&self, issuing: &mut Issuing, state: &mut State) -> Result<usize, IssuerError> {
        let (now, believed) = (self.host.reading().since_boot, self.believed_now());
        let max = self.shared.max_places.min(MAX_PLACES);
        let idle = |(index, occupancy): (usize, &Occupancy)| {
            let layout = occupancy.layout?;
            let next = self.shared.places[index].generator.next();
            let passed = |since: u64| Duration::from_micros(now.saturating_sub(since));
            // By the clock, unless that was ahead when its last ids were taken.
            let is_passed = layout.instant_above(next).plus(IDLE) <= believed;
            let is_idle = next == occupancy.seen.0 && passed(occupancy.seen.1) >= IDLE;
            (passed(occupancy.seated) >= IDLE && (is_passed || is_idle))
                .then_some((passed(occupancy.seen.1), index))
        };
        let found = issuing.places[..max].iter().enumerate().filter_map(idle).max();
        self.look_at_places(issuing);
        let (_, index) = found.ok_or(IssuerError::NoPlace { places: max })?;
        let layout = issuing.places[index].layout.unwrap_or(self.shared.layout);
        let counter = self.counter_of(index, layout);
        if issuing.places[index].node.is_some() {
            super::end(issuing, state, &counter);
            self.write(state)?;
        }
        let furthest = counter.generator.furthest();
        issuing.gone = issuing.gone.max(layout.instant_above(furthest));
        Ok(index)
    }
}
