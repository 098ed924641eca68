//! The clock sweep: a hand visits the slots in turn, in search of a slot that was not used since the hand's last visit.

use proptest::prelude::*;
use snowflake_ids_core::tag::clock_sweep::{IDLE, Sweep, SweptSlot};
use std::time::Duration;

/// Finds a slot to reuse, by a whole sweep.
pub fn sweep(
    hand: &mut usize,
    slots: usize,
    most: u32,
    look: impl FnMut(usize) -> Option<SweptSlot>,
) -> Option<usize> {
    Sweep::new(slots).go_on(usize::MAX, hand, most, look).flatten()
}

/// Slots as the hand finds them, the hand's place, and the number of slots visited in the last sweep. None: the slot is free.
struct Slots {
    all: Vec<Option<SweptSlot>>,
    hand: usize,
    looks: usize,
}

impl Slots {
    fn new(all: Vec<Option<SweptSlot>>) -> Self {
        Self { all, hand: 0, looks: 0 }
    }

    fn sweep(&mut self) -> Option<usize> {
        let most = self.all.iter().flatten().map(|sight| sight.slots).max().unwrap_or(0);
        let Self { all, hand, looks } = self;
        *looks = 0;
        sweep(hand, all.len(), most, |slot_index| {
            *looks += 1;
            let sight = all[slot_index].as_mut()?;
            let seen = *sight;
            sight.unmoved = Some(Duration::ZERO);
            Some(seen)
        })
    }

    fn used(&mut self, slot_index: usize) {
        self.all[slot_index].as_mut().unwrap().unmoved = None;
    }
}

const UNMOVED: SweptSlot = SweptSlot { awaited: false, unmoved: Some(Duration::ZERO), slots: u32::MAX };
const USED: Option<SweptSlot> = Some(SweptSlot { unmoved: None, ..UNMOVED });
const AWAITED: Option<SweptSlot> = Some(SweptSlot { awaited: true, ..UNMOVED });

const fn of_database(slots: u32) -> SweptSlot {
    SweptSlot { slots, ..UNMOVED }
}

#[test]
fn a_tag_that_is_used_between_visits_keeps_its_slot() {
    let mut slots = Slots::new(vec![USED; 4]);
    for _ in 0..100 {
        slots.used(2);
        let gone = slots.sweep().unwrap();
        assert_ne!(gone, 2);
        // Another tag gets the freed slot, and uses it.
        slots.used(gone);
    }
}

#[test]
fn where_all_were_used_one_goes_after_a_turn() {
    let mut slots = Slots::new(vec![USED; 5]);
    assert_eq!((slots.sweep(), slots.looks), (Some(0), 6));
    assert_eq!((slots.sweep(), slots.looks), (Some(1), 1), "the visit counts");
}

#[test]
fn a_slot_where_calls_wait_never_goes() {
    assert_eq!(Slots::new(vec![AWAITED, None, AWAITED]).sweep(), None);
    assert_eq!(Slots::new(vec![AWAITED, USED, AWAITED]).sweep(), Some(1));
    assert_eq!(Slots::new(vec![AWAITED, USED, Some(UNMOVED)]).sweep(), Some(2));
    assert_eq!(Slots::new(Vec::new()).sweep(), None);
}

#[test]
fn the_database_with_most_slots_gives_one_first() {
    let mut slots = Slots::new([1, 1, 3, 1, 3, 3].map(|slots| Some(of_database(slots))).to_vec());
    assert_eq!((slots.sweep(), slots.looks), (Some(2), 12), "none has more, and none is idle");
    slots.used(2);
    assert_eq!(slots.sweep(), Some(4));
    // Calls wait for the slot of the database with three slots, so the database with two slots gives one.
    let busy = SweptSlot { awaited: true, ..of_database(3) };
    let mut slots = Slots::new(vec![Some(of_database(1)), Some(of_database(2)), Some(busy)]);
    assert_eq!(slots.sweep(), Some(1));
}

#[test]
fn the_hand_does_not_look_at_all_of_many_slots() {
    let mut slots = Slots::new(vec![Some(of_database(1)); 10_000]);
    slots.all[9_999] = Some(of_database(2));
    assert_eq!(slots.sweep(), Some(0));
    assert!(slots.looks < 2_000, "{}", slots.looks);
    // The hand also stops early if all slots were used. It goes on while calls wait for the slots that it visits.
    let mut slots = Slots::new(vec![USED; 10_000]);
    assert_eq!((slots.sweep(), slots.looks), (Some(4_095), 4_096));
    slots.all = vec![AWAITED; 10_000];
    slots.all[3_000] = USED;
    assert_eq!(slots.sweep(), Some(3_000));
}

fn sights() -> impl Strategy<Value = Vec<Option<SweptSlot>>> {
    let unmoved = prop_oneof![Just(None), Just(Some(Duration::ZERO)), Just(Some(IDLE))];
    let sight = (any::<bool>(), unmoved, 1_u32..4);
    let sight = sight.prop_map(|(awaited, unmoved, slots)| SweptSlot { awaited, unmoved, slots });
    prop::collection::vec(prop::option::weighted(0.9, sight), 0..40)
}

proptest! {
    #[test]
    fn two_turns_find_what_there_is(all in sights(), hand in 0_usize..50) {
        let mut slots = Slots { hand, ..Slots::new(all.clone()) };
        let found = slots.sweep();
        prop_assert!(slots.looks <= 2 * all.len());
        prop_assert!(all.is_empty() || slots.hand < all.len());
        let may_go = |sight: &SweptSlot| !sight.awaited;
        match found {
            None => prop_assert!(!all.iter().flatten().any(may_go)),
            Some(slot_index) => {
                let gone = all[slot_index].unwrap();
                prop_assert!(may_go(&gone));
                // If the slot was not idle, no other unused slot belongs to a database with more slots.
                let is_idle = |sight: &SweptSlot| sight.unmoved == Some(IDLE);
                let better = |sight: &SweptSlot| {
                    may_go(sight) && sight.unmoved == Some(Duration::ZERO) && sight.slots > gone.slots && !is_idle(&gone)
                };
                prop_assert!(!all.iter().flatten().any(better), "{slot_index} of {all:?}");
            }
        }
    }
}
