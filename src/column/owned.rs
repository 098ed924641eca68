//! Sequences and identities of a column whose table and tables below are locked. Statements run as the owners of tables and
//! sequences; a comment names the exception.

use super::tags;
use crate::pg::relation::{self, Relation};
use crate::pg::report::{report, spi, tell};
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use crate::progress;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::bound::resumed;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::{Column, Facts, IdentityKind};
use snowflake_ids_core::column::notice::Notice;
use std::collections::BTreeSet;

macro_rules! internal {
    ($call:literal) => {
        Statement::new(concat!("SELECT snowflake_ids_internal.", $call))
    };
}
pub(super) use internal;

static DROP_IDENTITY: Statement =
    internal!("as_owner($1, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', $1::regclass, $2))");
pub(super) static CREATE: Statement = internal!("create_sequence($1, $2, $3, concat_ws(' ', $4, $5))");
pub(super) static DROP_SEQUENCES: Statement = internal!("drop_sequences($1, $2)");
pub(super) static ADVANCE: Statement = internal!("advance_sequence($1, $2)");
static KEPT: Statement = internal!("kept_sequence($1, $2, $3)");
static MOVE: Statement =
    internal!("sequence_move($1, ($2::json ->> 'last_value')::bigint, ($2::json ->> 'is_called')::boolean)");
static STORED: Statement = internal!("stored_id($1, $2)");

/// The highest number that a tag gave, if a table's owner may take its ids. Any role may name a tag in a default. The position of
/// another role's tag must not be revealed.
static ISSUED: Statement = Statement::new(
    "SELECT snowflake_ids_internal.highest_of_tag($2) WHERE snowflake_ids_internal.may_take_ids($1, $2)",
);

static ADD_IDENTITY: Statement = Statement::new(
    "SELECT format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY %s', $1::regclass, $2, $3, '(' || nullif($4, '') || ')')",
);
static IDENTITY: Statement = Statement::new(
    "SELECT d.objid FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 AND d.refobjsubid = $2
         AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'",
);

/// The name of a sequence, its type and its options, without limits that the type gives; and its position, comment and rights.
static FORMER: Statement = Statement::new(
    "SELECT snowflake_ids_internal.qualified_name(c.oid), format('AS %s', s.seqtypid::regtype), concat('INCREMENT BY ', s.seqincrement,
            ' MINVALUE ' || nullif(s.seqmin, -t.most - 1), ' MAXVALUE ' || nullif(s.seqmax, t.most), ' START WITH ', s.seqstart,
            ' CACHE ', s.seqcache, CASE WHEN s.seqcycle THEN ' CYCLE' END),
        json_build_object('last_value', p.last_value, 'is_called', p.is_called, 'comment', obj_description(c.oid, 'pg_class'), 'rights',
            CASE WHEN c.relacl IS NOT NULL THEN coalesce((SELECT json_agg(a) FROM aclexplode(c.relacl) AS a), '[]') END)::text
     FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid, snowflake_ids_internal.type_maximum(s.seqtypid) AS t (most),
        snowflake_ids_internal.sequence_position(c.oid) AS p WHERE c.oid = $1",
);

/// Gives a new sequence the comment and the rights. The owner becomes the grantor of all rights, even if another role had granted
/// them.
static SET_RIGHTS: Statement = Statement::new(
    "WITH made AS (
        SELECT format('ON SEQUENCE %s', snowflake_ids_internal.qualified_name(c.oid)) AS place, $2::json ->> 'comment' AS comment,
            ($2::json ->> 'rights')::json AS rights, c.relacl, acldefault('s', c.relowner) AS acl FROM pg_class AS c WHERE c.oid = $1
     ), wanted AS (
        SELECT a.* FROM made AS m, json_to_recordset(m.rights) AS a (grantee oid, privilege_type text, is_grantable boolean)
        UNION ALL SELECT a.grantee, a.privilege_type, a.is_grantable FROM made AS m, aclexplode(m.acl) AS a WHERE m.rights IS NULL
     ), roles (oid, name) AS (SELECT 0::oid, 'PUBLIC' UNION ALL SELECT r.oid, quote_ident(r.rolname) FROM pg_roles AS r)
     SELECT snowflake_ids_internal.as_owner($1, c.change) FROM (
        SELECT 0, format('COMMENT %s IS %L', m.place, m.comment) FROM made AS m WHERE octet_length(m.comment) <= 8000
        UNION ALL SELECT 1, format('REVOKE ALL %s FROM %s', m.place, r.name) FROM made AS m, roles AS r
        WHERE num_nonnulls(m.relacl, m.rights) > 0 AND r.oid IN (SELECT a.grantee FROM aclexplode(coalesce(m.relacl, m.acl)) AS a)
        UNION ALL SELECT 2, format('GRANT %s %s TO %s%s', w.privilege_type, m.place, r.name, CASE WHEN w.is_grantable THEN ' WITH GRANT OPTION' END)
        FROM made AS m, wanted AS w JOIN roles AS r ON r.oid = w.grantee WHERE num_nonnulls(m.relacl, m.rights) > 0
        ORDER BY 1 OFFSET 0) AS c (place, change)",
);

/// Returns a column's table and its name, as the arguments of statements.
pub(super) fn place<'a>(column: &Column) -> [DatumWithOid<'a>; 2] {
    let relation = Oid::from(column.table.oid);
    [relation.into(), relation::column_name(relation, column.number).into()]
}

/// Returns the highest id that a column and the columns below hold, or that their sequences and tags gave. Ignores negative ids.
/// With `resumes`, first resumes the sequences that were bound when the extension was dropped.
pub fn highest(facts: &Facts, column: &Column, resumes: bool) -> Result<i64, ErrorReport> {
    let (members, mut stored) = (facts.members(column), None);
    for (done, member) in (0..).zip(&members) {
        progress::set_tables(done, members.len().try_into().unwrap_or(u64::MAX));
        // Rows of a distributed table are in shards.
        if member.table.is_distributed || !relation::has_no_page(member.table.oid.into()) {
            stored = stored.max(STORED.value::<i64>(&place(member)).map_err(spi)?);
        }
    }
    let owned = members.iter().flat_map(|member| &member.owned).filter(|_| resumes);
    for sequence in owned.filter_map(|oid| facts.sequence(*oid)) {
        let Some(relation) = Relation::find(sequence.oid.into()) else { continue };
        let at = relation.position().map(|at| (at.last_value, at.is_called));
        if let Some((number, is_called)) = at.and_then(|at| resumed(sequence, at, stored)) {
            tell(Notice::Resumed { sequence: sequence.name.clone() });
            relation.lock();
            tags::put(sequence.oid.into(), number, is_called)?;
        }
    }
    let named = members.iter().flat_map(|member| member.owned.iter().chain(&member.sequence));
    let issued =
        named.copied().collect::<BTreeSet<_>>().into_iter().map(|of| tags::highest_number(of.into()));
    let mut highest = stored.unwrap_or_default().max(0);
    for issued in issued.chain([highest_of_tags(&members)]) {
        highest = highest.max(issued?);
    }
    Ok(highest)
}

/// Returns the highest number that the tags of columns' defaults gave.
fn highest_of_tags(members: &[&Column]) -> Result<i64, ErrorReport> {
    let of_default = |member: &&Column| {
        let (_, written) = member.own().filter(|(kind, _)| *kind == IdKind::Segment)?;
        Some((
            Relation::find(member.table.oid.into())?.owner().to_u32(),
            TextOut::of(written)?.as_bytes().to_vec(),
        ))
    };
    let mut highest = 0;
    for (owner, written) in members.iter().filter_map(of_default).collect::<BTreeSet<_>>() {
        if let Some(tag) = tags::tag_of_default(written)? {
            let issued = ISSUED.value::<i64>(&[Oid::from(owner).into(), tag.into()]).map_err(spi)?;
            highest = highest.max(issued.unwrap_or_default());
        }
    }
    Ok(highest)
}

/// Drops identities, and with them their sequences. With `keeps`, creates sequences with the same names and options again.
pub fn drop_identities(members: &[&Column], keeps: bool) -> Result<(), ErrorReport> {
    for member in members {
        // With a partitioned table's identity go those of its partitions.
        let identity = member.identity_sequence.map(Oid::from).filter(|of| Relation::find(*of).is_some());
        let Some(of) = identity else { continue };
        let ([name, of_type, options, former], [relation, attribute]) = (read(of)?, place(member));
        DROP_IDENTITY.run(&place(member)).map_err(spi)?;
        if keeps {
            // With its type, because a sequence that ends at its type's maximum is widened when it is bound.
            let arguments = [relation, attribute, name.into(), of_type.into(), options.into()];
            pass_on(former, CREATE.value::<Oid>(&arguments).map_err(spi)?)?;
        }
    }
    Ok(())
}

/// Returns the name, the type and the options of a sequence that is made again, and the argument of [`pass_on`].
fn read(of: Oid) -> Result<[Option<TextOut>; 4], ErrorReport> {
    let found = FORMER.first(&[of.into()], |row| Ok([row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]));
    Ok(found.map_err(spi)?.unwrap_or_default())
}

/// Gives a new sequence the position, the comment and the rights of the former one.
fn pass_on(former: Option<TextOut>, to: Option<Oid>) -> Result<(), ErrorReport> {
    let arguments = [to.into(), former.into()];
    MOVE.run(&arguments).and_then(|()| SET_RIGHTS.run(&arguments)).map_err(spi)
}

/// Returns the sequence that a column owns, as wide as its numbers above an id need it.
pub fn kept_sequence(column: &Column, highest: i64) -> Result<Option<Oid>, ErrorReport> {
    let [relation, attribute] = place(column);
    KEPT.value::<Oid>(&[relation, attribute, highest.into()]).map_err(spi)
}

/// Restores an identity. Its sequence gets the name and the options of the kept one, or without one, `options`.
pub fn restore_identity(
    column: &Column,
    identity: IdentityKind,
    highest: i64,
    kept: Option<Oid>,
    mut options: Option<TextOut>,
) -> Result<(), ErrorReport> {
    let kind = if identity == IdentityKind::Always { "ALWAYS" } else { "BY DEFAULT" };
    let mut former = None;
    if let Some(kept) = kept {
        let name;
        [name, _, options, former] = read(kept)?;
        DROP_SEQUENCES.run(&place(column)).map_err(spi)?;
        // Others may still use the sequence.
        if let (None, Some(name), Some(of)) = (Relation::find(kept), name, &options) {
            let named = [b"SEQUENCE NAME ", name.as_bytes(), b" ", of.as_bytes()].concat();
            options = Some(TextOut::of_bytes(&named));
        }
    }
    let [relation, attribute] = place(column);
    // The caller's rights are used, because the owner may lack the right to create a sequence in the schema. No row is read.
    ADD_IDENTITY.execute(&[relation, attribute, kind.into(), options.into()]).map_err(spi)?;
    let table = Oid::from(column.table.oid);
    let made = IDENTITY.value::<Oid>(&[table.into(), column.number.into()]).map_err(spi)?;
    if made.is_none() {
        return Err(report(ColumnError::OtherSequence));
    } else if kept.is_some() {
        pass_on(former, made)?;
    }
    ADVANCE.run(&[made.into(), highest.into()]).map_err(spi)
}
