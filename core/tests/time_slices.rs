//! Time slices when more databases wait than there are slots.

use proptest::prelude::*;
use snowflake_ids_core::process::time_slices::{
    AHEAD, FORCE, GIVE_WAY, PAUSE, SliceEnd, SlicePlan, TIME_SLICE, TimeSlices, Urgency,
};
use std::collections::BTreeMap;
use std::time::Duration;

type Pool = TimeSlices<u32, usize>;

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Databases that all wait for something now.
fn now<const N: usize>(waiting: [u32; N]) -> impl Iterator<Item = (u32, Urgency)> {
    waiting.into_iter().map(|one| (one, Urgency::Now))
}

/// Databases that are all being served and have work, each in the slot whose index is the database's oid.
fn busy<const N: usize>(served: [u32; N]) -> impl Iterator<Item = (usize, u32, bool)> {
    served.into_iter().map(|one| (usize::try_from(one).unwrap(), one, false))
}

fn left(plan: &SlicePlan<u32, usize>) -> Vec<usize> {
    plan.leave.iter().map(|(slot, _)| *slot).collect()
}

#[test]
fn the_longest_waiting_is_first_however_often_one_looks() {
    let mut time_slices = Pool::default();
    time_slices.record(now([7]), [], at(0));
    time_slices.record(now([3, 7]), [], at(5));
    time_slices.record(now([9, 3, 7, 1]), [], at(6));
    assert_eq!(time_slices.queue(), [7, 3, 1, 9]);
    time_slices.record(now([9, 3]), [], at(7));
    time_slices.record(now([9, 3, 7]), [], at(8));
    assert_eq!(time_slices.queue(), [3, 9, 7], "one that was served waits anew");
    assert_eq!(time_slices.plan(4, 2, 0, at(8)).begin, [3, 9], "as many as there is room for");
    assert_eq!(time_slices.plan(4, 2, 1, at(8)).begin, [3], "after others");
}

#[test]
fn what_a_session_waits_for_is_before_what_none_does_yet_but_not_for_ever() {
    let mut time_slices = Pool::default();
    time_slices.record([(1, Urgency::Ahead)], [], at(0));
    time_slices.record([(1, Urgency::Ahead), (2, Urgency::Now)], [], at(10));
    assert_eq!(time_slices.queue(), [2, 1]);
    let later = AHEAD + at(1);
    time_slices.record([(1, Urgency::Ahead), (3, Urgency::Now)], [], later);
    assert_eq!(time_slices.queue(), [1, 3]);
    time_slices.record([(1, Urgency::Now), (3, Urgency::Now)], [], later + at(1));
    assert_eq!(time_slices.queue(), [1, 3], "it does not lose its place when a session begins to wait");
}

#[test]
fn the_longest_served_makes_room_once_its_time_slice_is_over() {
    let mut time_slices = Pool::default();
    time_slices.record([], busy([5]), at(0));
    time_slices.record(now([1, 2]), busy([5, 4]), at(10));
    assert_eq!(left(&time_slices.plan(2, 0, 0, TIME_SLICE.saturating_sub(at(1)))), [0; 0]);
    assert_eq!(time_slices.plan(2, 0, 0, TIME_SLICE).leave, [(5, TIME_SLICE + GIVE_WAY.0)]);
    time_slices.record(now([1]), busy([5, 4]), TIME_SLICE + at(50));
    assert_eq!(left(&time_slices.plan(2, 0, 0, TIME_SLICE + at(50))), [0; 0], "one is leaving already");
    time_slices.record(now([1, 2]), busy([5, 4]), TIME_SLICE + at(60));
    assert_eq!(left(&time_slices.plan(2, 0, 0, TIME_SLICE + at(60))), [4]);
    assert_eq!(left(&time_slices.plan(2, 0, 3, at(999))), [0; 0], "each is asked once");
}

#[test]
fn who_has_nothing_to_do_makes_room_first_and_at_once() {
    let mut time_slices = Pool::default();
    time_slices.record(now([1]), busy([5]), at(0));
    time_slices.record(now([1]), [(5, 5, false), (6, 6, true)], at(200));
    assert_eq!(left(&time_slices.plan(2, 0, 0, at(200))), [6]);
}

#[test]
fn none_leaves_or_is_ended_where_none_is_short() {
    let mut time_slices = Pool::default();
    time_slices.record(now([3]), busy([1, 2]), at(0));
    assert_eq!(left(&time_slices.plan(2, 0, 0, at(500))), [1]);
    time_slices.record([], busy([1, 2]), at(9_999));
    let plan = time_slices.plan(2, 0, 0, at(9_999));
    assert_eq!((left(&plan), plan.end, plan.short), (vec![], vec![], false));
    time_slices.record([], busy([2]), at(10_000));
    assert!(!time_slices.plan(2, 1, 1, at(10_000)).short, "others have the free place");
    assert!(time_slices.plan(2, 0, 1, at(10_000)).short, "others wait, too");
}

#[test]
fn who_does_not_leave_is_ended_and_is_slow_from_then_on() {
    let mut time_slices = Pool::default();
    time_slices.record(now([2]), busy([1]), at(0));
    let by = time_slices.plan(2, 0, 0, TIME_SLICE).leave[0].1;
    assert_eq!(time_slices.plan(2, 0, 0, by).due, Some(by + FORCE));
    assert_eq!(time_slices.plan(2, 0, 0, by + FORCE).end, [1]);
    time_slices.ended(1, SliceEnd::Cut, at(2_000));
    time_slices.record(now([1, 2]), [], at(2_000));
    let plan = time_slices.plan(2, 1, 0, at(2_000));
    assert_eq!((plan.begin, plan.due), (vec![2], Some(at(2_000) + PAUSE.first)), "not at once");
    // The slow databases together use two of the four slots.
    time_slices.ended(3, SliceEnd::Cut, at(2_000));
    time_slices.ended(4, SliceEnd::OutOfReach, at(2_000));
    time_slices.record(now([1, 3, 4]), [], at(2_001));
    time_slices.record(now([1, 3, 4, 5]), [], at(3_000));
    assert_eq!(time_slices.plan(4, 4, 0, at(3_000)).begin, [1, 3, 5]);
    time_slices.record(now([4]), busy([1, 3, 5]), at(3_000));
    time_slices.record(now([4]), busy([1, 3, 5]), at(3_200));
    let plan = time_slices.plan(4, 1, 0, at(3_200));
    assert_eq!((plan.begin, plan.leave), (vec![], vec![(1, at(3_200) + GIVE_WAY.1)]), "one of its like");
    time_slices.ended(1, SliceEnd::Served, at(3_300));
    time_slices.ended(3, SliceEnd::Served, at(3_300));
    time_slices.record(now([1, 3]), [], at(3_300));
    assert_eq!(time_slices.plan(2, 2, 0, at(3_300)).begin, [1, 3], "no longer slow");
}

#[test]
fn who_is_served_in_vain_waits_longer_each_time() {
    let mut time_slices = Pool::default();
    let mut time = at(0);
    for pause in [100, 200, 400, 800, 1000, 1000] {
        time_slices.ended(1, SliceEnd::InVain, time);
        time_slices.record(now([1]), [], time);
        assert_eq!(time_slices.plan(1, 1, 0, time + at(pause - 1)).begin, [0; 0]);
        time += at(pause);
        time_slices.record(now([1]), [], time);
        assert_eq!(time_slices.plan(1, 1, 0, time).begin, [1]);
    }
}

/// The behaviour of a database while it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A time slice takes the first number of milliseconds. The database wants its next time slice the second number later.
    Sound(u64, u64),
    /// The worker hangs until it has to leave its slot.
    Hangs,
    /// The worker hangs until it is ended by force.
    Stuck,
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => (1_u64..200, 0_u64..500).prop_map(|(takes, again)| Way::Sound(takes, again)),
        2 => Just(Way::Hangs),
        1 => Just(Way::Stuck),
    ]
}

struct Served {
    database: usize,
    since: u64,
    by: Option<u64>,
}

/// A pool and its databases. Times are in milliseconds.
struct World<'a> {
    ways: &'a [Way],
    time_slices: Pool,
    served: BTreeMap<usize, Served>,
    /// The time from which each database wants service.
    wants: Vec<u64>,
    /// The longest wait of each database. The wait of a `Way::Sound` database lasts to the end of its time slice. The wait of
    /// any other database lasts to the beginning of its time slice.
    longest: Vec<u64>,
}

impl World<'_> {
    fn end(&mut self, slot: usize, end: SliceEnd, now: u64) {
        let Served { database, since, .. } = self.served.remove(&slot).unwrap();
        self.time_slices.ended(u32::try_from(database).unwrap(), end, at(now));
        let (waited, again) = match self.ways[database] {
            Way::Sound(_, again) => (now - self.wants[database], again),
            Way::Hangs | Way::Stuck => (since - self.wants[database], 0),
        };
        self.longest[database] = self.longest[database].max(waited);
        self.wants[database] = now + again;
    }

    fn is_served(&self, database: usize) -> bool {
        self.served.values().any(|time_slice| time_slice.database == database)
    }

    fn step(&mut self, slots: usize, now: u64) {
        let ended = |time_slice: &Served| match (self.ways[time_slice.database], time_slice.by) {
            (Way::Sound(takes, _), _) if now >= time_slice.since + takes => Some(SliceEnd::Served),
            (Way::Hangs, Some(by)) if now >= by => Some(SliceEnd::Cut),
            _ => None,
        };
        let gone: Vec<_> =
            self.served.iter().filter_map(|(slot, time_slice)| Some((*slot, ended(time_slice)?))).collect();
        for (slot, end) in gone {
            self.end(slot, end, now);
        }
        let waits = |one: &usize| self.wants[*one] <= now && !self.is_served(*one);
        let waiting: Vec<u32> =
            (0..self.ways.len()).filter(waits).map(|one| u32::try_from(one).unwrap()).collect();
        let served: Vec<_> = self
            .served
            .iter()
            .map(|(slot, time_slice)| (*slot, u32::try_from(time_slice.database).unwrap(), false))
            .collect();
        self.time_slices.record(waiting.into_iter().map(|one| (one, Urgency::Now)), served, at(now));
        let plan = self.time_slices.plan(slots, slots - self.served.len(), 0, at(now));
        for (slot, by) in plan.leave {
            self.served.get_mut(&slot).unwrap().by = Some(u64::try_from(by.as_millis()).unwrap());
        }
        for slot in plan.end {
            self.end(slot, SliceEnd::Cut, now);
        }
        for database in plan.begin {
            let slot = (0..slots).find(|slot| !self.served.contains_key(slot)).unwrap();
            let database = usize::try_from(database).unwrap();
            self.served.insert(slot, Served { database, since: now, by: None });
        }
    }
}

/// Runs a pool. Returns the longest wait of each database.
fn longest_waits(ways: &[Way], slots: usize, time: u64) -> Vec<u64> {
    let mut world = World {
        ways,
        time_slices: Pool::default(),
        served: BTreeMap::new(),
        wants: vec![0; ways.len()],
        longest: vec![0; ways.len()],
    };
    for now in (0..time).step_by(10) {
        world.step(slots, now);
    }
    for one in 0..ways.len() {
        if !world.is_served(one) {
            world.longest[one] = world.longest[one].max(time.saturating_sub(world.wants[one]));
        }
    }
    world.longest
}

/// The longest that one time slice can take, with the pause before it and the delay of periodic checks.
fn bound(give_way: Duration) -> u64 {
    u64::try_from((TIME_SLICE + give_way + FORCE + PAUSE.most).as_millis()).unwrap() + 300
}

#[test]
fn who_is_served_and_wants_more_at_once_comes_after_those_that_wait() {
    let longest = longest_waits(&[Way::Sound(1, 0), Way::Sound(1, 0), Way::Sound(1, 0)], 1, 1_000);
    assert!(longest.iter().all(|longest| *longest <= 50), "{longest:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every database is served within a bounded number of time slices, whatever the others do.
    #[test]
    fn none_starves(ways in prop::collection::vec(ways(), 1..16), slots in 1_usize..7) {
        let sound = ways.iter().filter(|way| matches!(way, Way::Sound(..))).count() as u64;
        let slow = ways.len() as u64 - sound;
        let longest = longest_waits(&ways, slots, 60_000);
        // A sound database may wait for one time slice of each other sound database. It waits for slow databases only in two cases:
        // there is a single slot, or the databases are not yet known to be slow.
        let unknown = slow * bound(GIVE_WAY.0);
        let shared = if slots == 1 { (sound + 1) * bound(GIVE_WAY.1) } else { 0 };
        let for_sound = unknown + shared + sound * 500 + 500;
        let for_slow = unknown + slow * 2 * bound(GIVE_WAY.1) + shared * 2 + sound * 500;
        for (way, longest) in ways.iter().zip(longest) {
            let bound = if matches!(way, Way::Sound(..)) { for_sound } else { for_slow };
            prop_assert!(longest <= bound, "{way:?} waited {longest} ms, of {bound}, among {ways:?}");
        }
    }

    /// Many databases hang. Once they are known to hang, they do not keep the other databases from being served.
    #[test]
    fn the_sound_do_not_wait_for_the_slow(slow in 1_usize..40, sound in 1_usize..8, slots in 2_usize..7) {
        let mut time_slices = Pool::default();
        let databases = u32::try_from(slow).unwrap();
        for one in 0..databases {
            time_slices.ended(one, SliceEnd::Cut, at(0));
        }
        time_slices.record((0..databases).map(|one| (one, Urgency::Now)), [], at(1));
        let plan = time_slices.plan(slots, slots, 0, at(1_000));
        prop_assert!(!plan.begin.is_empty());
        let served: Vec<_> = plan.begin.iter().enumerate().map(|(slot, one)| (slot, *one, false)).collect();
        let fresh = (databases..).take(sound).map(|one| (one, Urgency::Now));
        let waiting: Vec<_> = (0..databases).filter(|one| !plan.begin.contains(one)).map(|one| (one, Urgency::Now)).collect();
        time_slices.record(waiting.into_iter().chain(fresh), served.iter().copied(), at(1_010));
        let begin = time_slices.plan(slots, slots - served.len(), 0, at(1_010)).begin;
        let ahead = begin.iter().filter(|one| **one >= databases).count();
        prop_assert!(ahead >= sound.min(slots.div_ceil(2)), "{ahead} of {sound} at {slots} slots");
    }
}
