//! The amount of work in a run.

/// The amount of work in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Enough rounds for narrow quartiles.
    Full,
    /// Enough rounds to see that everything runs, and the order of magnitude.
    Quick,
}

impl Effort {
    /// Returns the amount for this effort.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}
