//! Taking turns: what makes figures of one run comparable on a machine that is never quiet.

use anyhow::Result;

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

/// Measures every contestant once a round, each round starting with the next one, so that neither a slow
/// minute nor a place in the order favours anybody. Gives the measurements of each contestant by round.
pub fn interleave<C, T>(
    rounds: usize,
    contestants: &[C],
    mut measure: impl FnMut(&C) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut measured: Vec<Vec<T>> = contestants.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for turn in 0..contestants.len() {
            let whose = (round + turn) % contestants.len();
            measured[whose].push(measure(&contestants[whose])?);
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_starts_with_the_next_contestant() -> Result<()> {
        let mut order = Vec::new();
        interleave(3, &["a", "b", "c"], |name| {
            order.push(*name);
            Ok(())
        })?;
        assert_eq!(order, ["a", "b", "c", "b", "c", "a", "c", "a", "b"]);
        Ok(())
    }

    #[test]
    fn measurements_stay_with_their_contestant() -> Result<()> {
        let measured = interleave(2, &[10, 20], |value| Ok(value * 2))?;
        assert_eq!(measured, [[20, 20], [40, 40]]);
        Ok(())
    }
}
