//! The rules that the protocol rests on, each of which a run can leave out of the code that ships.

use snowflake_ids_core::guard::{self, Guard};

/// What a run keeps to: everything, or all but one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guards(Option<Guard>);

impl Guards {
    pub fn without(guard: Guard) -> Self {
        Self(Some(guard))
    }

    /// Has the shipped code on this thread keep to it.
    pub fn impose(self) {
        guard::leave_out(self.0);
    }
}
