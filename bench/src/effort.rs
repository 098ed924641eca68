//! How much work a run may be.

/// How much work a run may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Enough rounds for narrow quartiles.
    Full,
    /// Enough to see that everything runs, and the order of magnitude.
    Quick,
}

impl Effort {
    /// The amount that fits.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}
