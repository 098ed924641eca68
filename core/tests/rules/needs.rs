//! Tests that leave a guard out.

use snowflake_ids_core::guard::{Guard, leave_out};

/// Asserts that a condition holds with all guards, and does not hold without this guard.
pub fn needs(rule: Guard, holds: impl Fn() -> bool) {
    assert!(holds(), "it does not hold with {rule:?}");
    leave_out(Some(rule));
    let still = holds();
    leave_out(None);
    assert!(!still, "it holds without {rule:?}, too");
}
