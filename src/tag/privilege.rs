//! Privileges on tags.
//!
//! A session reads the privilege tables once for each tag and role. The result is cached until an invalidation message
//! reports a change of the tables, a role or a membership.

use super::cache::{self, Permit};
use super::error::SegmentError;
use super::timeout::SegmentTimeout;
use crate::pg::catalog::{Source, Table, Unseen, is_superuser};
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Row, Sought, View};
use crate::pg::tag_text::TagText;
use crate::pg::{role, server};
use crate::shared::segments::Segments;
use crate::shared::slot::Slot;
use crate::store::tables::{SEGMENT, SEGMENT_PRIVILEGE, SEGMENT_RESTRICTED};
use pgrx::pg_sys::{InvalidOid, Oid};
use snowflake_ids_core::tag::directory::{Tag, TagKey};
use snowflake_ids_core::tag::privilege::{Access, Privileges};
use std::ffi::CStr;

/// Checks that the current role may take ids of a tag, and returns the permit for the cache. Fails if the privilege tables
/// stay locked.
pub fn to_take(tag: &Tag, timeout: &SegmentTimeout) -> Result<Permit, SegmentError> {
    let known = cache::find(tag.as_bytes()).and_then(cache::CachedTag::known_permit);
    known.map_or_else(|| check(tag, Access::Take, role::current(), Some(timeout)), Ok)
}

/// Checks that a role has the right to `action` on a tag. Fails if the privilege tables stay locked.
pub fn check(
    tag: &Tag,
    action: Access,
    role: Oid,
    timeout: Option<&SegmentTimeout>,
) -> Result<Permit, SegmentError> {
    role::on_change(cache::forget_permits);
    match permit(tag, action, role, timeout) {
        Ok(permit) => permit.ok_or_else(|| SegmentError::denied(tag, action, role)),
        Err(Unseen::Locked) => {
            Err(SegmentError::rights_locked(tag, timeout.map(SegmentTimeout::limit).unwrap_or_default()))
        }
        Err(Unseen::NoTable) => Err(SegmentError::NoTable),
    }
}

/// Returns whether the current role has the right to `action` on a tag. Fails if the extension does not exist any more.
pub fn allows(tag: &Tag, action: Access) -> Result<bool, SegmentError> {
    match permit(tag, action, role::current(), None) {
        Err(Unseen::NoTable) => Err(SegmentError::NoTable),
        permit => Ok(matches!(permit, Ok(Some(_)))),
    }
}

fn permit(
    tag: &Tag,
    action: Access,
    role: Oid,
    timeout: Option<&SegmentTimeout>,
) -> Result<Option<Permit>, Unseen> {
    let open = matches!(action, Access::Take | Access::Look) && !is_restricted(tag, timeout)?;
    if open {
        return Ok(Some(Permit::ANY_ROLE));
    }
    let allowed = administers(SEGMENT.find(), role) || granted(tag, role, timeout)?.allow(action);
    Ok(allowed.then_some(Permit::of(role)))
}

/// Returns the tags that have a slot for which `wanted` returns a value, and that the current role may see, with their slots.
/// Tags of other databases are visible only to roles that may see all activity.
pub fn visible<T>(
    segments: &'static Segments,
    wanted: impl Fn(&Slot) -> Option<T>,
) -> impl Iterator<Item = (TagKey, &'static Slot, T)> {
    let all = server::may_see_all_activity();
    let database = (!all).then(server::database);
    let is_seen = |key: &TagKey| matches!(allows(&key.tag, Access::Look), Ok(true));
    segments.tags(database, wanted).filter(move |(key, ..)| all || is_seen(key))
}

/// Returns whether a role manages all tags or all series of this database, as superusers do, and roles that may write to the
/// table of tags or series.
pub fn administers(table: Option<Source>, role: Oid) -> bool {
    is_superuser(role) || table.is_some_and(|table| role::may_update(role, table.oid()))
}

fn is_restricted(tag: &Tag, timeout: Option<&SegmentTimeout>) -> Result<bool, Unseen> {
    rows::has(&SEGMENT_RESTRICTED, wait(timeout), View::Committed, &[of(&TagText(*tag))])
}

fn granted(tag: &Tag, role: Oid, timeout: Option<&SegmentTimeout>) -> Result<Privileges, Unseen> {
    Ok(held(&grants(&SEGMENT_PRIVILEGE, of(&TagText(*tag)), wait(timeout))?, role))
}

fn of(tag: &TagText) -> (&'static CStr, Sought<'_>) {
    (c"tag", Sought::Text(tag))
}

fn wait(timeout: Option<&SegmentTimeout>) -> Wait {
    Wait::Yes(timeout.map(SegmentTimeout::left))
}

/// Returns the privileges of roles, from the rows of a table of rights whose key is this one.
pub fn grants(
    table: &'static Table,
    key: (&CStr, Sought<'_>),
    wait: Wait,
) -> Result<Vec<(Oid, Privileges)>, Unseen> {
    let mut found = Vec::new();
    let record = |row: &Row<'_>| {
        let granted = row.oid(c"grantee").zip(row.text(c"privileges"));
        found.extend(granted.map(|(grantee, list)| (grantee, Privileges::stored(&list))));
    };
    rows::look(table, wait, &[key], record)?;
    Ok(found)
}

/// Returns a role's privileges: those that are granted to the role itself, to roles of which it is a member, or to PUBLIC
/// (role 0).
pub fn held(grants: &[(Oid, Privileges)], role: Oid) -> Privileges {
    let theirs = grants.iter().filter(|(of, _)| *of == InvalidOid || role::has_rights_of(role, *of));
    theirs.fold(Privileges::NONE, |all, (_, more)| all.with(*more))
}

impl SegmentError {
    #[cold]
    fn denied(tag: &Tag, action: Access, role: Oid) -> Self {
        Self::Denied { tag: TagText(*tag).shown(), action, role: role::name(role).unwrap_or_default() }
    }
}
