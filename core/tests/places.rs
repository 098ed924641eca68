//! Which tags may have a place, and which give one up.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use snowflake_ids_core::places::{Claim, IDLE, Occupancy, PlaceError, Use, admit, most_on_trial};
use std::time::Duration;

const LONG: Use = Use::Buffers(Duration::from_mins(1));
const LONGER: Use = Use::Buffers(Duration::from_secs(61));
const SHORT: Use = Use::Buffers(Duration::from_secs(9));

/// Asks for a place where these are taken, of so many.
fn ask(claim: Claim, places: usize, uses: &[Use]) -> Result<Option<usize>, PlaceError> {
    let on_trial = uses.iter().filter(|used| matches!(used, Use::Trial { .. })).count();
    let occupancy = Occupancy { places, has_free: uses.len() < places, on_trial };
    admit(claim, occupancy, uses.iter().copied().enumerate())
}

#[test]
fn few_places_are_for_trials() {
    assert_eq!([1, 4, 8, 128, 1_024, 1_000_000].map(most_on_trial), [1, 4, 8, 8, 64, 62_500]);
}

#[test]
fn a_free_place_is_taken_first() {
    assert_eq!(ask(Claim::Known, 4, &[LONG, LONGER, Use::Trial { awaited: false }]), Ok(None));
    assert_eq!(ask(Claim::Trial, 4, &[LONG, LONGER]), Ok(None));
}

#[test]
fn a_known_tag_takes_the_place_of_one_on_trial_then_of_the_longest_idle_then_of_a_floor() {
    let floor = Use::Floor(IDLE);
    let (left, awaited) = (Use::Trial { awaited: false }, Use::Trial { awaited: true });
    let all = [floor, LONG, LONGER, awaited, left];
    assert_eq!(ask(Claim::Known, 5, &all), Ok(Some(4)));
    assert_eq!(ask(Claim::Known, 4, &all[..4]), Ok(Some(3)));
    assert_eq!(ask(Claim::Known, 3, &all[..3]), Ok(Some(2)));
    assert_eq!(ask(Claim::Known, 2, &all[..2]), Ok(Some(1)));
    assert_eq!(ask(Claim::Known, 1, &all[..1]), Ok(Some(0)));
    let busy = [SHORT, Use::Awaited, Use::Floor(Duration::from_secs(9))];
    assert_eq!(ask(Claim::Known, 3, &busy), Err(PlaceError::Full));
}

#[test]
fn more_trials_than_may_be_wait_even_where_places_are_free() {
    let awaited = [Use::Trial { awaited: true }; 8];
    assert_eq!(ask(Claim::Trial, 100, &awaited), Err(PlaceError::Trials));
    assert_eq!(ask(Claim::Trial, 100, &awaited[1..]), Ok(None));
    assert_eq!(ask(Claim::Trial, 9, &[&awaited[..], &[LONG]].concat()), Err(PlaceError::Trials));
}

#[test]
fn a_trial_takes_the_place_of_a_tag_that_idles_and_of_no_other() {
    assert_eq!(ask(Claim::Trial, 2, &[SHORT, LONG]), Ok(Some(1)));
    for used in [SHORT, Use::Awaited, Use::Floor(Duration::from_hours(1)), Use::Trial { awaited: true }] {
        assert!(ask(Claim::Trial, 20, &[used; 20]).is_err(), "{used:?}");
    }
}

fn uses() -> impl Strategy<Value = Use> {
    let idle = || (0_u64..30).prop_map(Duration::from_secs);
    prop_oneof![
        any::<bool>().prop_map(|awaited| Use::Trial { awaited }),
        Just(Use::Awaited),
        idle().prop_map(Use::Buffers),
        idle().prop_map(Use::Floor),
    ]
}

proptest! {
    #[test]
    fn no_tag_loses_a_place_that_is_in_use(uses in prop::collection::vec(uses(), 1..40), free in 0_usize..3, known in any::<bool>()) {
        let claim = if known { Claim::Known } else { Claim::Trial };
        let trials = uses.iter().filter(|used| matches!(used, Use::Trial { .. })).count();
        let places = uses.len() + free;
        match ask(claim, places, &uses) {
            Ok(None) => {
                prop_assert!(free > 0);
                prop_assert!(known || trials < most_on_trial(places));
            }
            Ok(Some(place)) => match uses[place] {
                Use::Trial { awaited } => prop_assert!(known || !awaited),
                Use::Buffers(idle) => prop_assert!(idle >= IDLE && (known || trials < most_on_trial(places))),
                Use::Floor(idle) => prop_assert!(idle >= IDLE && known),
                Use::Awaited => prop_assert!(false, "it is waited for"),
            },
            Err(PlaceError::Trials) => prop_assert!(!known && trials >= most_on_trial(places)),
            Err(PlaceError::Full) => {
                let left = Use::Trial { awaited: false };
                prop_assert!(free == 0 && !uses.contains(&left));
            }
        }
    }
}
