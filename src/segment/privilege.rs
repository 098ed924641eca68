//! Who may do what with a tag.
//!
//! A session looks into the tables once for each tag and role, and keeps what it found until the server tells that the
//! tables, a role or a membership has changed.

use super::failure::TagFailure;
use super::held::{self, Permit};
use crate::pg::catalog::{Source, is_superuser};
use crate::pg::rows::Row;
use crate::pg::tag::TagText;
use crate::pg::{role, rows};
use pgrx::pg_sys::{InvalidOid, Oid};
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::privilege::{Action, Privileges};
use std::ffi::CStr;

/// Fails unless the current role may take ids of a tag; gives what need not be asked again.
pub fn to_take(tag: &Tag) -> Result<Permit, TagFailure> {
    held::find(tag.as_bytes()).and_then(held::Held::permit).map_or_else(|| check(tag, Action::Take), Ok)
}

/// Fails unless the current role may do this with a tag.
pub fn check(tag: &Tag, action: Action) -> Result<Permit, TagFailure> {
    role::on_change(held::forget_permits);
    let role = role::current();
    permit(tag, action, role).ok_or_else(|| TagFailure::denied(tag, action, role))
}

/// Whether the current role may do this with a tag.
pub fn allows(tag: &Tag, action: Action) -> bool {
    permit(tag, action, role::current()).is_some()
}

fn permit(tag: &Tag, action: Action, role: Oid) -> Option<Permit> {
    let open = matches!(action, Action::Take | Action::Look) && !is_restricted(tag);
    if open {
        return Some(Permit::Anyone);
    }
    let allowed = administers(role) || granted(tag, role).allow(action);
    allowed.then_some(Permit::Role(role))
}

/// Whether a role manages all tags of this database: superusers, and whoever may write to the table of tags.
pub fn administers(role: Oid) -> bool {
    is_superuser(role) || Source::find().is_some_and(|source| role::may_update(role, source.oid()))
}

/// So is what can't be looked up.
fn is_restricted(tag: &Tag) -> bool {
    let mut found = false;
    each_row(c"segment_restricted", tag, |_| found = true).is_none() || found
}

/// What a role may do by itself, by the roles that it is a member of, and by PUBLIC, which is role 0.
fn granted(tag: &Tag, role: Oid) -> Privileges {
    let mut grants = Vec::new();
    each_row(c"segment_privilege", tag, |row| grants.push((row.oid(c"grantee"), row.text(c"privileges"))));
    let theirs = grants.into_iter().filter_map(|(grantee, list)| {
        let grantee = grantee?;
        let has = grantee == InvalidOid || role::has_rights_of(role, grantee);
        list.filter(|_| has).map(|list| Privileges::stored(&list))
    });
    theirs.fold(Privileges::NONE, Privileges::with)
}

/// None where the table can't be read. Without the extension there are no rows.
fn each_row(table: &CStr, tag: &Tag, each: impl FnMut(&Row<'_>)) -> Option<()> {
    match Source::look_up(table) {
        Some(table) => rows::of_tag(table, &TagText(*tag), each),
        None => Some(()),
    }
}

impl TagFailure {
    #[cold]
    fn denied(tag: &Tag, action: Action, role: Oid) -> Self {
        Self::Denied { tag: TagText(*tag).shown(), action, role: role::name(role).unwrap_or_default() }
    }
}
