//! Binds and unbinds sequences for their owners.

use super::{facts, steps, tags};
use crate::bound::bind as binding;
use crate::pg::relation::Relation;
use crate::pg::report::{report, tell};
use crate::pg::text::TextOut;
use crate::pg::{role, sequence};
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::Sequence;
use snowflake_ids_core::column::verdict;

/// Binds a sequence to ids of a kind. Without a name, the tag is named after the sequence.
pub fn bind(
    of: Oid,
    kind: IdKind,
    tag: Option<TextOut>,
    generator: Option<&TextOut>,
) -> Result<(), ErrorReport> {
    steps::check_source("snowflake_ids.bind_sequence", generator)?;
    lock_owned(of)?;
    bind_locked(&facts::of_sequence(of)?, kind, tag, generator)
}

/// Binds a sequence that is locked, and belongs to the caller.
pub fn bind_locked(
    sequence: &Sequence,
    kind: IdKind,
    mut tag: Option<TextOut>,
    generator: Option<&TextOut>,
) -> Result<(), ErrorReport> {
    let of = sequence.oid.into();
    let notices = verdict::judge_sequence(sequence, facts::is_of_distributed(of)?, kind);
    notices.map_err(report)?.into_iter().for_each(tell);
    let is_named = tag.is_some();
    if kind == IdKind::Segment && !is_named {
        tag = steps::unnamed_tag(of)?;
    }
    let most = verdict::most_of_users(sequence);
    tags::bind(of, kind, tag.as_ref(), generator, Some(most), is_named)?;
    binding::keep_bigint(of).map_err(report)
}

/// Unbinds a sequence, which counts by itself again.
pub fn unbind(of: Oid) -> Result<(), ErrorReport> {
    lock_owned(of)?;
    if tags::unbind(of, 0)? { Ok(()) } else { Err(report(ColumnError::NotBound(facts::name_of(of)?))) }
}

/// Locks a sequence of the caller. It may have changed during the wait for the lock.
fn lock_owned(of: Oid) -> Result<(), ErrorReport> {
    check_owned(of)?;
    Relation::find(of).inspect(Relation::lock);
    check_owned(of)
}

/// Fails if a relation is no sequence, or not the caller's.
fn check_owned(of: Oid) -> Result<(), ErrorReport> {
    // Other facts are read only for the error.
    if sequence::is_sequence(of)
        && Relation::find(of).is_some_and(|found| role::has_privileges_of(found.owner()))
    {
        return Ok(());
    }
    verdict::check_sequence_owner(&facts::of_sequence(of)?).map_err(report)
}
