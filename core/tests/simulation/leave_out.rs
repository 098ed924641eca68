//! Leaving one rule of a protocol out.

/// What a run keeps to: every rule, or all but one.
#[derive(Clone, Copy, Debug)]
pub struct Guards<Guard> {
    removed: Option<Guard>,
}

impl<Guard> Default for Guards<Guard> {
    fn default() -> Self {
        Self { removed: None }
    }
}

impl<Guard: Copy + PartialEq> Guards<Guard> {
    pub fn without(guard: Guard) -> Self {
        Self { removed: Some(guard) }
    }

    pub fn keep(self, guard: Guard) -> bool {
        self.removed != Some(guard)
    }
}
