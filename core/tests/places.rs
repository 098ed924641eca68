//! The hand that goes over places.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use snowflake_ids_core::sequence::places::{Sight, sweep};

/// Places as the hand finds them; None: free. A visit is noted.
struct Places {
    all: Vec<Option<Sight>>,
    hand: usize,
    looks: usize,
}

impl Places {
    fn new(all: Vec<Option<Sight>>) -> Self {
        Self { all, hand: 0, looks: 0 }
    }

    fn sweep(&mut self) -> Option<usize> {
        let most = self.all.iter().flatten().map(|sight| sight.places).max().unwrap_or(0);
        let Self { all, hand, looks } = self;
        *looks = 0;
        sweep(hand, all.len(), most, |place| {
            *looks += 1;
            let sight = all[place].as_mut()?;
            let seen = *sight;
            sight.moved = false;
            Some(seen)
        })
    }

    fn used(&mut self, place: usize) {
        self.all[place].as_mut().unwrap().moved = true;
    }
}

const IDLE: Option<Sight> = Some(Sight { awaited: false, moved: false, places: 1 });
const USED: Option<Sight> = Some(Sight { awaited: false, moved: true, places: 1 });
const AWAITED: Option<Sight> = Some(Sight { awaited: true, moved: false, places: 1 });

const fn of_database(places: u32) -> Sight {
    Sight { awaited: false, moved: false, places }
}

#[test]
fn a_tag_that_is_used_between_visits_keeps_its_place() {
    let mut places = Places::new(vec![USED; 4]);
    for _ in 0..100 {
        places.used(2);
        let gone = places.sweep().unwrap();
        assert_ne!(gone, 2);
        // Another tag comes there.
        places.used(gone);
    }
}

#[test]
fn where_all_were_used_one_goes_after_a_turn() {
    let mut places = Places::new(vec![USED; 5]);
    assert_eq!((places.sweep(), places.looks), (Some(0), 6));
    assert_eq!((places.sweep(), places.looks), (Some(1), 1), "the visit counts");
}

#[test]
fn a_place_where_calls_wait_never_goes() {
    assert_eq!(Places::new(vec![AWAITED, None, AWAITED]).sweep(), None);
    assert_eq!(Places::new(vec![AWAITED, USED, AWAITED]).sweep(), Some(1));
    assert_eq!(Places::new(vec![AWAITED, USED, IDLE]).sweep(), Some(2));
    assert_eq!(Places::new(Vec::new()).sweep(), None);
}

#[test]
fn the_database_with_most_places_gives_one_first() {
    let mut places = Places::new([1, 1, 3, 1, 3, 3].map(|places| Some(of_database(places))).to_vec());
    assert_eq!((places.sweep(), places.looks), (Some(2), 3), "none has more");
    places.used(2);
    assert_eq!(places.sweep(), Some(4));
    // Its places are in use: then one of the next.
    let busy = Sight { awaited: true, ..of_database(3) };
    let mut places = Places::new(vec![Some(of_database(1)), Some(of_database(2)), Some(busy)]);
    assert_eq!(places.sweep(), Some(1));
}

#[test]
fn the_hand_does_not_look_at_all_of_many_places() {
    let mut places = Places::new(vec![IDLE; 10_000]);
    places.all[9_999] = Some(of_database(2));
    assert_eq!(places.sweep(), Some(0));
    assert!(places.looks < 2_000, "{}", places.looks);
    // Nor where all were used; but where calls wait.
    let mut places = Places::new(vec![USED; 10_000]);
    assert_eq!((places.sweep(), places.looks), (Some(4_095), 4_096));
    places.all = vec![AWAITED; 10_000];
    places.all[3_000] = USED;
    assert_eq!(places.sweep(), Some(3_000));
}

fn sights() -> impl Strategy<Value = Vec<Option<Sight>>> {
    let sight = (any::<bool>(), any::<bool>(), 1_u32..4).prop_map(|(awaited, moved, places)| Sight {
        awaited,
        moved,
        places,
    });
    prop::collection::vec(prop::option::weighted(0.9, sight), 0..40)
}

proptest! {
    #[test]
    fn two_turns_find_what_there_is(all in sights(), hand in 0_usize..50) {
        let mut places = Places { hand, ..Places::new(all.clone()) };
        let found = places.sweep();
        prop_assert!(places.looks <= 2 * all.len());
        prop_assert!(all.is_empty() || places.hand < all.len());
        let may_go = |sight: &Sight| !sight.awaited;
        match found {
            None => prop_assert!(!all.iter().flatten().any(may_go)),
            Some(place) => {
                let gone = all[place].unwrap();
                prop_assert!(may_go(&gone));
                // None that has not moved is of a database with more places.
                let better = |sight: &Sight| may_go(sight) && !sight.moved && sight.places > gone.places;
                prop_assert!(!all.iter().flatten().any(better), "{place} of {all:?}");
            }
        }
    }
}
