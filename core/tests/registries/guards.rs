//! The guards of the protocol. A test run can switch off any one of them in the shipped code.

use snowflake_ids_core::guard::{self, Guard};

/// The guards that a run keeps: all, or all except one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guards(Option<Guard>);

impl Guards {
    pub fn without(guard: Guard) -> Self {
        Self(Some(guard))
    }

    /// Makes the shipped code on this thread keep these guards.
    pub fn impose(self) {
        guard::leave_out(self.0);
    }
}
