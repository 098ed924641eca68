//! Tags that registries have raised at this transaction's request, for a column that already holds ids: see
//! [`snowflake_ids_core::registry::handover::Seeded`].

use crate::pg::catalog::Source;
use crate::pg::per_process::PerProcess;
use crate::pg::report::{raise, spi};
use crate::pg::transaction::{self, Hooks};
use crate::store::registry as store;
use crate::tag::slot;
use snowflake_ids_core::registry::handover::Seeded;
use snowflake_ids_core::tag::directory::Tag;
use std::cell::RefCell;

static SEEDED: PerProcess<RefCell<Seeded<(Source, Tag)>>> = PerProcess::new(RefCell::new(Seeded::NONE));

/// Records that the registries have raised a tag above `highest`. A rollback to a savepoint does not lower the tag on
/// the registries again.
pub fn record(source: Source, tag: &Tag, highest: i64) {
    static HOOKS: Hooks =
        Hooks { before_commit: settle, before_prepare: settle, committed, ended: forget, ..Hooks::none() };
    transaction::watch(&HOOKS);
    SEEDED.borrow_mut().add((source, *tag), highest, discard);
}

pub fn is_empty() -> bool {
    SEEDED.borrow().0.is_empty()
}

/// Records the highest id of each raised tag in the table of received ids. Runs just before the commit, because the record
/// blocks every session that receives ids of such a tag.
fn settle() {
    if is_empty() {
        return;
    }
    let all = SEEDED.replace(Seeded::NONE);
    let recorded = transaction::with_snapshot(|| {
        all.0
            .iter()
            .filter(|((source, _), _)| source.is_there())
            .try_for_each(|((source, tag), highest)| source.as_owner(|| store::record_reached(tag, *highest)))
    });
    if let Err(error) = recorded {
        raise(spi(error));
    }
    SEEDED.replace(all);
}

fn discard((source, tag): &(Source, Tag)) {
    slot::discard(*source, tag);
}

fn committed() {
    if let Ok(mut all) = SEEDED.try_borrow_mut() {
        all.committed(discard);
    }
}

fn forget() {
    if let Ok(mut all) = SEEDED.try_borrow_mut() {
        all.0.clear();
    }
}
