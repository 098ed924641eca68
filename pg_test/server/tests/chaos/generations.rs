//! Ids within one generation of a tag may not repeat. A tag begins a new generation when it is dropped and created, forced back
//! or restored from a dump, or if its database is replaced by another database of the same name. The tag's ids may then repeat ids
//! of the former generation.

use super::database::TAGS;
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicU32, Ordering};

/// The generations of a tag in a database, numbered from 0.
#[derive(Debug, Default)]
pub struct Generations {
    /// The earliest generation from which a session may now get ids.
    earliest: AtomicU32,
    /// The latest generation from which a session may now get ids.
    latest: AtomicU32,
}

impl Generations {
    /// Declares that a new generation may begin at any moment.
    pub fn open(&self) {
        self.latest.fetch_add(1, Ordering::SeqCst);
    }

    /// Declares that the new generation has begun.
    pub fn confirm(&self) {
        self.earliest.store(self.latest.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Declares that the new generation has not begun, and will not begin.
    pub fn retract(&self) {
        self.latest.store(self.earliest.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// The earliest generation, read before a call.
    pub fn earliest(&self) -> u32 {
        self.earliest.load(Ordering::SeqCst)
    }

    /// The latest generation, read after a call.
    pub fn latest(&self) -> u32 {
        self.latest.load(Ordering::SeqCst)
    }
}

/// An id that a session got, with the generations to which it may belong.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub database: usize,
    pub tag: usize,
    pub id: i64,
    pub earliest: u32,
    pub latest: u32,
    /// The session; the next field is the time in milliseconds since the test began.
    pub session: usize,
    pub at: u64,
}

impl Display for Given {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { database, tag, id, earliest, latest, session, at } = self;
        write!(f, "{id} of {} in d{database}, generation {earliest} to {latest}, ", TAGS[*tag])?;
        match session {
            &usize::MAX => write!(f, "to the test itself at {at} ms"),
            _ => write!(f, "to session {session} at {at} ms"),
        }
    }
}

/// Checks that no id was given twice within one generation.
pub fn unique(given: &[Given]) -> Result<()> {
    let mut ids: HashMap<(usize, usize, i64), Vec<Given>> = HashMap::with_capacity(given.len());
    for one in given {
        ids.entry((one.database, one.tag, one.id)).or_default().push(*one);
    }
    let mut twice: Vec<_> =
        ids.into_values().filter_map(|mut given| (!apart(&mut given)).then_some(given)).collect();
    twice.sort_by_key(|given| given.iter().map(|one| one.at).max());
    let Some(first) = twice.first() else { return Ok(()) };
    let first: Vec<_> = first.iter().map(ToString::to_string).collect();
    bail!("{} ids were given twice, among {}; the first:\n{}", twice.len(), given.len(), first.join("\n"))
}

/// Whether each of these ids can belong to a different generation.
fn apart(given: &mut [Given]) -> bool {
    given.sort_by_key(|one| one.latest);
    let mut taken = Vec::with_capacity(given.len());
    given.iter().all(|one| match (one.earliest..=one.latest).find(|generation| !taken.contains(generation)) {
        Some(generation) => {
            taken.push(generation);
            true
        }
        None => false,
    })
}

#[test]
fn ids_of_one_generation_are_told_from_those_of_two() {
    let given = |earliest, latest| Given { database: 0, tag: 0, id: 7, earliest, latest, session: 0, at: 0 };
    assert!(unique(&[given(0, 0), given(1, 1)]).is_ok());
    assert!(unique(&[given(0, 1), given(0, 1)]).is_ok());
    assert!(unique(&[given(0, 1), given(0, 0), given(1, 2)]).is_ok());
    assert!(unique(&[given(1, 1), given(1, 1)]).is_err());
    assert!(unique(&[given(0, 1), given(0, 1), given(0, 1)]).is_err());
    let other = Given { tag: 1, ..given(1, 1) };
    assert!(unique(&[given(1, 1), other]).is_ok());
}
