//! Tests of guards: each test must fail when the code leaves a guard out.

use super::model::model;
use snowflake_ids_core::guard::{Guard, leave_out};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Fails if the test passes under all interleavings although the code leaves the guard out.
pub fn fails_without(guard: Guard, test: fn()) {
    leave_out(Some(guard));
    let went = catch_unwind(AssertUnwindSafe(|| model(test)));
    leave_out(None);
    assert!(went.is_err(), "all goes well without {guard:?}");
}
