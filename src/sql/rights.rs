//! Tags and series that a role changes, and the rights of roles on them. Statements run with the rights of the tables' owner,
//! after this module has checked the caller's rights.

use crate::pg::catalog::Source;
use crate::pg::report::{report, reported, spi, tell};
use crate::pg::role;
use crate::pg::statement::{self, Statement};
use crate::pg::tag_text::{self, TagArg, TagText};
use crate::pg::text::{Text, TextOut};
use crate::series;
use crate::sql::error::CallError;
use crate::store::citus;
use crate::store::tables::SEGMENT;
use crate::tag::error::SegmentError;
use crate::tag::privilege;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::spi::quote_literal;
use snowflake_ids_core::Explain;
use snowflake_ids_core::series::{MAX_NAME_BYTES as MAX_SERIES_BYTES, Scope, SeriesError};
use snowflake_ids_core::tag::definition::MAX_NAME_BYTES;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::{Access, Privilege, Privileges};
use std::fmt;

/// A tag, or a series with its id.
#[derive(Clone, Copy, Debug)]
pub enum Object {
    Tag(Tag),
    Series(Tag, i64),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if matches!(self, Self::Tag(_)) { "segment tag" } else { "series" };
        write!(f, "{of} \"{}\"", TagText(self.name()).shown())
    }
}

/// A tag or a series that the caller may change.
pub struct Changed {
    pub source: Source,
    pub object: Object,
    is_distributed: bool,
}

impl Changed {
    /// Checks the caller's right to `action` on a tag.
    pub fn tag(tag: Option<TagArg<'_>>, action: Access) -> Result<Self, SegmentError> {
        let tag = tag_text::checked(tag.ok_or(SegmentError::NoTag)?.0).map_err(SegmentError::BadTag)?;
        let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
        privilege::check(&tag, action, role::current(), None)?;
        Ok(Self { source, object: Object::Tag(tag), is_distributed: false })
    }

    /// Checks that a series belongs to the caller.
    pub fn series(series: Option<&Text<'_>>) -> Result<Self, ErrorReport> {
        let name = series_name(series)?;
        let cached = series::look_up(name)?;
        cached.check(Access::Own, role::current()).map_err(report)?;
        let object = Object::Series(series::checked(name).map_err(report)?, cached.series.id);
        Ok(Self { source: cached.table, object, is_distributed: cached.series.scope == Scope::Shard })
    }

    /// Runs a statement whose first argument is the name of the tag or series.
    pub fn run<'a>(
        &self,
        sql: &str,
        others: impl IntoIterator<Item = DatumWithOid<'a>>,
    ) -> Result<(), ErrorReport> {
        let arguments: Vec<_> = [TagText(self.object.name()).into()].into_iter().chain(others).collect();
        self.change(|| statement::changed(sql, &arguments, |_| Ok(())).map(drop).map_err(spi))
    }

    /// Runs `work` with the rights of the tables' owner. Passes the change of a distributed series on to all nodes.
    pub fn change<T>(&self, work: impl FnOnce() -> Result<T, ErrorReport>) -> Result<T, ErrorReport> {
        self.source.as_owner(|| match self.object {
            Object::Series(_, id) if self.is_distributed => {
                check_coordinator()?;
                let done = work()?;
                PASS_ON.run(&[id.into()]).map_err(spi)?;
                Ok(done)
            }
            _ => work(),
        })
    }
}

static PASS_ON: Statement = Statement::new("SELECT snowflake_ids_internal.series_pass_on($1)");

/// Fails if a distributed series cannot be changed on this node.
pub fn check_coordinator() -> Result<(), ErrorReport> {
    if citus::is_worker().map_err(spi)? { Err(report(SeriesError::OnWorker)) } else { Ok(()) }
}

/// Returns the name of a series, without looking up the series.
pub fn series_name<'a>(series: Option<&'a Text<'_>>) -> Result<&'a [u8], ErrorReport> {
    let series = series.ok_or_else(|| report(SeriesError::NullName))?;
    Ok(series.bytes(MAX_SERIES_BYTES, "series")?)
}

/// Parses a list of privileges.
pub fn listed(privileges: Option<Text<'_>>) -> Result<Privileges, ErrorReport> {
    let list = privileges.ok_or(CallError::NoPrivileges)?;
    Privileges::parse(&list.read("privileges")?).map_err(report)
}

/// The reason why a right cannot be given, or news about rights.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RightsError {
    #[error("role must not be null")]
    #[explain(BadArgument, detail = "It is the name of a role, or public.")]
    NullRole,
    #[error("role \"{0}\" does not exist")]
    #[explain(Undefined, detail = "Privileges are granted to roles of this server, or to public.")]
    #[explain(hint = "Create it with CREATE ROLE, or correct its name.")]
    NoRole(String),
    #[error("{0} cannot belong to public")]
    #[explain(BadArgument, detail = "Its owner must be a role.", hint_with = match _0 {
        Object::Tag(tag) => format!("To let every role use the tag: {}.", call(tag, "grant", "USAGE")),
        Object::Series(..) => "To let every role use the series, grant USAGE to public with snowflake_ids.series_grant.".to_owned(),
    })]
    OwnedByPublic(Object),
    #[error("{0} is no longer open to every role")]
    #[explain(Notice, detail = "Roles now need privileges to use it.", hint_with = match _0 {
        Object::Tag(tag) => format!("To let every role use the tag again: {}.", call(tag, "grant", "USAGE")),
        Object::Series(..) => "To let every role use the series again, grant USAGE to public with snowflake_ids.series_grant.".to_owned(),
    })]
    NoLongerOpen(Object),
    #[error("{0} is open to every role")]
    #[explain(Notice, detail_with = match _0 {
        Object::Tag(_) => "The USAGE privilege is not checked until the tag is restricted.".to_owned(),
        Object::Series(..) => "The USAGE privilege is not checked until the series is restricted.".to_owned(),
    }, hint_with = match _0 {
        Object::Tag(tag) => format!("To restrict the tag: {}.", call(tag, "revoke", "ALL")),
        Object::Series(..) => "To restrict the series, revoke ALL from public with snowflake_ids.series_revoke.".to_owned(),
    })]
    Open(Object),
    #[error("rights on segment tag \"{0}\" stay as they are on other nodes of the cluster")]
    #[explain(
        Notice,
        hint = "To pass them on, CALL snowflake_ids.use_citus() on the coordinator afterwards."
    )]
    OtherNodes(String),
}

reported!(RightsError);

/// Returns a call that changes the rights of PUBLIC on a tag.
fn call(tag: &Tag, verb: &str, privilege: &str) -> String {
    let tag = quote_literal(TagText(*tag).shown());
    format!("SELECT snowflake_ids.segment_{verb}({tag}, 'public', '{privilege}')")
}

static UNKNOWN: Statement = Statement::new(
    "SELECT snowflake_ids_internal.segment_unknown($1) WHERE NOT EXISTS (SELECT FROM snowflake_ids.registry_server)",
);
static HAS_WORKERS: Statement = Statement::new("SELECT snowflake_ids_internal.has_workers()");
static GRANTEE: Statement =
    Statement::new("SELECT r.oid::bigint FROM pg_roles AS r WHERE r.rolname = $1::name COLLATE \"C\"");

/// Returns the OID of a role; 0 for PUBLIC, which cannot be a role's name.
fn grantee(role: Option<&Text<'_>>) -> Result<i64, ErrorReport> {
    let role = TextOut::of_bytes(role.ok_or(RightsError::NullRole)?.bytes(MAX_NAME_BYTES, "role")?);
    let found = GRANTEE.value::<i64>(&[role.clone().into()]).map_err(spi)?;
    let public = role.as_bytes().eq_ignore_ascii_case(b"public").then_some(0);
    Ok(found.or(public).ok_or_else(|| RightsError::NoRole(role.to_utf8_lossy()))?)
}

impl Object {
    pub const fn name(&self) -> Tag {
        match self {
            Self::Tag(name) | Self::Series(name, _) => *name,
        }
    }

    /// Runs a statement with `{table}` for the table of rights, `{key}` for its key, and the value of the key as `$1`. Returns
    /// whether the first row is true.
    fn run<const N: usize>(self, sql: &str, rest: [DatumWithOid<'_>; N]) -> Result<bool, ErrorReport> {
        let (table, column, key) = match self {
            Self::Tag(tag) => ("snowflake_ids.segment_privilege", "tag", TagText(tag).into()),
            Self::Series(_, id) => ("snowflake_ids.series_privilege", "series", id.into()),
        };
        let arguments: Vec<_> = [key].into_iter().chain(rest).collect();
        let sql = sql.replace("{table}", table).replace("{key}", column);
        let found = statement::changed(&sql, &arguments, |row| row.get::<bool>(1)).map_err(spi)?;
        Ok(found.flatten() == Some(true))
    }

    /// Restricts the tag or series to roles with privileges, and deletes privileges of dropped roles. Returns whether every role
    /// could use it before.
    fn restrict(self) -> Result<bool, ErrorReport> {
        let (lock, restrict) = match self {
            Self::Tag(_) => (
                "SELECT true FROM snowflake_ids.segment AS s WHERE s.tag = $1 FOR KEY SHARE",
                "INSERT INTO snowflake_ids.segment_restricted AS r (tag) VALUES ($1) ON CONFLICT DO NOTHING RETURNING true",
            ),
            Self::Series(..) => (
                "SELECT true FROM snowflake_ids.series AS s WHERE s.id = $1 FOR NO KEY UPDATE",
                "UPDATE snowflake_ids.series AS s SET restricted = true WHERE s.id = $1 AND NOT s.restricted RETURNING true",
            ),
        };
        if let (Self::Tag(tag), false) = (self, self.run(lock, [])?) {
            UNKNOWN.run(&[TagText(tag).into()]).map_err(spi)?;
        }
        self.run(
            "DELETE FROM {table} AS p WHERE p.{key} = $1 AND p.grantee <> 0
                 AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = p.grantee)",
            [],
        )?;
        let was_open = self.run(restrict, [])?;
        if let Self::Tag(tag) = self
            && HAS_WORKERS.value::<bool>(&[]).map_err(spi)? == Some(true)
        {
            tell(RightsError::OtherNodes(TagText(tag).shown()));
        }
        Ok(was_open)
    }

    fn is_open(self) -> Result<bool, ErrorReport> {
        let sql = match self {
            Self::Tag(_) => {
                "SELECT NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = $1)"
            }
            Self::Series(..) => "SELECT NOT s.restricted FROM snowflake_ids.series AS s WHERE s.id = $1",
        };
        self.run(sql, [])
    }

    fn add(self, grantee: i64, privileges: Privileges) -> Result<(), ErrorReport> {
        let sql = "INSERT INTO {table} AS p ({key}, grantee, privileges) VALUES ($1, $2::oid, $3)
            ON CONFLICT ({key}, grantee) DO UPDATE
            SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, EXCLUDED.privileges, '')";
        self.run(sql, [grantee.into(), privileges.to_string().into()]).map(drop)
    }

    /// Removes privileges from a role, or from all roles.
    fn remove(self, grantee: Option<i64>, privileges: Privileges) -> Result<(), ErrorReport> {
        let sql = "UPDATE {table} AS p SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', $3)
            WHERE p.{key} = $1 AND ($2 IS NULL OR p.grantee = $2::oid)";
        self.run(sql, [grantee.into(), privileges.to_string().into()])?;
        self.run("DELETE FROM {table} AS p WHERE p.{key} = $1 AND p.privileges = ''", []).map(drop)
    }

    fn grant(self, role: Option<&Text<'_>>, privileges: Privileges) -> Result<(), ErrorReport> {
        let grantee = grantee(role)?;
        if self.restrict()? && grantee != 0 {
            tell(RightsError::NoLongerOpen(self));
        }
        self.add(grantee, privileges)
    }

    fn revoke(self, role: Option<&Text<'_>>, privileges: Privileges) -> Result<(), ErrorReport> {
        let grantee = grantee(role)?;
        if grantee == 0 {
            self.restrict()?;
        } else if self.is_open()? {
            tell(RightsError::Open(self));
        }
        self.remove(Some(grantee), privileges)
    }

    fn set_owner(self, owner: &Text<'_>) -> Result<(), ErrorReport> {
        let owner = grantee(Some(owner))?;
        if owner == 0 {
            return Err(RightsError::OwnedByPublic(self).into());
        }
        self.restrict()?;
        self.remove(None, Privilege::Owner.into())?;
        self.add(owner, Privilege::Owner.into())
    }
}

/// Defines a function that changes the rights of a role on a tag or a series.
macro_rules! changes {
    ($name:ident($of:ident) = $changed:expr, $change:path) => {
        #[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
        fn $name(
            $of: Option<Text<'_>>,
            role: Option<Text<'_>>,
            privileges: Option<Text<'_>>,
        ) -> Result<(), ErrorReport> {
            let changed = $changed?;
            let privileges = listed(privileges)?;
            changed.change(|| $change(changed.object, role.as_ref(), privileges))
        }
    };
}

changes!(segment_grant(tag) = Changed::tag(tag.map(TagArg::from), Access::Own), Object::grant);
changes!(segment_revoke(tag) = Changed::tag(tag.map(TagArg::from), Access::Own), Object::revoke);
changes!(series_grant(series) = Changed::series(series.as_ref()), Object::grant);
changes!(series_revoke(series) = Changed::series(series.as_ref()), Object::revoke);

/// Returns the OID of a role; 0 for PUBLIC.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn segment_grantee(role: Option<Text<'_>>) -> Result<i64, ErrorReport> {
    grantee(role.as_ref())
}

#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn segment_set_owner(tag: TagArg<'_>, owner: Text<'_>) -> Result<(), ErrorReport> {
    Object::Tag(tag_text::checked(tag.0).map_err(SegmentError::BadTag)?).set_owner(&owner)
}

#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn series_set_owner(name: TagArg<'_>, id: i64, owner: Text<'_>) -> Result<(), ErrorReport> {
    Object::Series(series::checked(name.0).map_err(report)?, id).set_owner(&owner)
}
