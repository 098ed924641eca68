//! Tags that a transaction has had the registries raise, for a column that has ids already.
//!
//! The registries have done it by then, whatever becomes of the transaction. Here, what was reserved before is taken away:
//! at once, so that the transaction itself gets none of it, and again when it is committed. With the commit comes the note
//! that ids up to there are in use, so that a registry that is set back to before is refused.

use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, spi};
use crate::pg::transaction::{self, Hooks};
use crate::segment::place;
use crate::store::registry as store;
use snowflake_ids_core::directory::Tag;
use std::cell::RefCell;
use std::sync::Once;

type Seeded = Vec<(Source, Tag, i64)>;

static SEEDED: PerProcess<RefCell<Seeded>> = PerProcess::new(RefCell::new(Vec::new()));

/// The registries have a tag whose ids are above one. A savepoint that is rolled back changes nothing of that.
pub fn note(source: Source, tag: &Tag, highest: i64) {
    static HOOKS: Hooks = Hooks {
        watched: Once::new(),
        before_commit: settle,
        before_prepare: settle,
        committed: discard,
        ended: forget,
        subtransaction_aborted: |_| (),
        subtransaction_committed: |_, _| (),
    };
    transaction::watch(&HOOKS);
    SEEDED.borrow_mut().push((source, *tag, highest));
    place::discard(source, tag);
}

/// Whether the transaction has had no tag raised.
pub fn is_empty() -> bool {
    SEEDED.borrow().is_empty()
}

/// Late: until it is committed, the note holds up everybody who receives ids of the tag.
fn settle() {
    if is_empty() {
        return;
    }
    let all = SEEDED.take();
    let noted = transaction::with_snapshot(|| {
        let mut there = all.iter().filter(|(source, _, _)| source.is_there());
        there.try_for_each(|(source, tag, highest)| source.as_owner(|| store::note_reached(tag, *highest)))
    });
    if let Err(error) = noted {
        raise(spi(&error));
    }
    SEEDED.replace(all);
}

/// From the note on, what a registry gives is compared with it. What it gave before is taken away.
fn discard() {
    if let Ok(all) = SEEDED.try_borrow() {
        all.iter().for_each(|(source, tag, _)| place::discard(*source, tag));
    }
    forget();
}

fn forget() {
    if let Ok(mut all) = SEEDED.try_borrow_mut() {
        *all = Vec::new();
    }
}
