//! Rules that a test leaves out.

use snowflake_ids_core::guard::{Guard, leave_out};

/// Asserts that something holds with all rules, and not without this one.
pub fn needs(rule: Guard, holds: impl Fn() -> bool) {
    assert!(holds(), "it does not hold with {rule:?}");
    leave_out(Some(rule));
    let still = holds();
    leave_out(None);
    assert!(!still, "it holds without {rule:?}, too");
}
