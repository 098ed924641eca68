//! Every guard is needed: if the shipped code leaves one guard out, some run issues an id twice or breaks another promise.
//! `stories` covers guards whose absence random runs would seldom show.

use super::event::Scope;
use super::run::{Run, SCOPES};
use snowflake_ids_core::guard::{Guard, leave_out};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of seeds of which at least one must fail if a guard is left out.
const SEEDS: usize = 1_000;

/// The seeds of a scope. If the scope has storms, only the stormy seeds count.
fn seeds(scope: Scope) -> impl Iterator<Item = u64> + Clone {
    let mine = move |seed: &u64| SCOPES[usize::try_from(seed % 5).unwrap()] == scope;
    let stormy = move |seed: &u64| scope == Scope::Succession || seed.is_multiple_of(7);
    (0..).filter(mine).filter(stormy)
}

/// Runs something without a guard. None: an assertion of the shipped code failed.
pub fn without<T>(guard: Guard, run: impl FnOnce() -> T) -> Option<T> {
    leave_out(Some(guard));
    let done = catch_unwind(AssertUnwindSafe(run));
    leave_out(None);
    done.ok()
}

/// The first seed whose run fails without a guard.
fn first_bad(guard: Guard, scope: Scope) -> Option<(u64, &'static str)> {
    let bad = |seed| match without(guard, || Run::new(seed)) {
        None => Some((seed, "an assertion did not hold")),
        Some(run) if run.issues_twice() => Some((seed, "an id was issued twice")),
        Some(run) if run.damaged() > 0 => Some((seed, "a file was damaged")),
        Some(_) => None,
    };
    seeds(scope).take(SEEDS).find_map(bad)
}

macro_rules! without {
    ($($test:ident: $guard:ident $scope:ident;)*) => {$(
        #[test]
        fn $test() {
            let bad = first_bad(Guard::$guard, Scope::$scope);
            println!("without {:?}: seed {bad:?}", Guard::$guard);
            assert!(bad.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    a_file_not_synced_is_damaged: SyncFile Numbers;
    a_name_not_synced_repeats_ids: SyncDirectory Numbers;
    a_start_at_the_clock_repeats_ids: StartAtHighWaterMark Numbers;
    a_term_noted_before_it_is_closed_repeats_ids: CloseFirst Numbers;
    a_term_noted_for_another_node_repeats_ids: SettleOwnTerm Shared;
    bits_read_before_the_position_repeat_ids: TermRead Numbers;
    ids_beyond_the_expiry_come_twice: ExpiryClamps Tight;
    a_copy_taken_for_the_original_has_the_same_lease: CopyKnown Shared;
    a_copy_taken_for_the_original_has_the_same_number: CopyKnown Numbers;
}
