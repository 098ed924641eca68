//! Tags of columns and sequences. The core decides how a tag gets fit; this module makes the changes with the rights of the
//! caller. A registry decides for its tags itself.

use super::facts;
use crate::bound::bind as binding;
use crate::pg::relation::{self, Relation};
use crate::pg::report::{report, spi, tell};
use crate::pg::sequence;
use crate::pg::statement::{self, Statement};
use crate::pg::tag_text::TagText;
use crate::pg::text::TextOut;
use crate::pg::{extension, role};
use crate::store::tables::SEGMENT;
use crate::store::{citus, registry};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pg_sys::{self, Oid};
use pgrx::spi::quote_identifier;
use snowflake_ids_core::bound::Increment;
use snowflake_ids_core::column::default::{self, IdKind};
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::{Base, IdentityKind, Sequence};
use snowflake_ids_core::column::node::Numbers;
use snowflake_ids_core::column::notice::Notice;
use snowflake_ids_core::column::tag::{
    Course, KnownTag, Need, TagStep, named_after as named_after_names, provide,
};
use snowflake_ids_core::tag::directory::Tag;
use std::ffi::CString;

/// Tells the registry, if the database uses one. `registry_seed` asks again under a lock, because the registries may be given
/// up after this check.
static SEED: Statement = Statement::new(
    "SELECT CASE WHEN EXISTS (SELECT FROM snowflake_ids.registry_server)
        THEN snowflake_ids_internal.registry_seed($1, $2) ELSE false END",
);
static DROP: Statement = Statement::new("SELECT snowflake_ids.segment_drop($1)");
static CREATE: Statement = Statement::new(
    "SELECT snowflake_ids.segment_create($1, max_value => $2, increment => $3, remainder => $4)",
);
static KEEP_MADE: Statement =
    Statement::new("UPDATE snowflake_ids.segment AS s SET is_made = true WHERE s.tag = $1 COLLATE \"C\"");
static LIMIT: Statement = Statement::new("SELECT snowflake_ids.segment_alter($1, max_value => $2)");
static RAISE: Statement = Statement::new("SELECT snowflake_ids.segment_raise($1, $2)");

/// Lets the owner of a column move a new tag, so that setval and TRUNCATE ... RESTART IDENTITY still work.
static GRANT: Statement = Statement::new(
    "INSERT INTO snowflake_ids.segment_privilege AS p (tag, grantee, privileges)
     SELECT $1, $2, 'UPDATE' WHERE NOT has_table_privilege($2, 'snowflake_ids.segment', 'UPDATE') ON CONFLICT DO NOTHING",
);

/// The highest number of a sequence, including numbers that were issued and may not be stored yet; and the tag of a bound sequence,
/// if it is gone. The highest number of a descending sequence is its start.
static HIGHEST: Statement = Statement::of_few(
    "SELECT greatest(m.last_number, CASE WHEN g.is_gone THEN NULL WHEN m.tag IS NOT NULL THEN snowflake_ids_internal.highest_of_tag(m.tag)
            WHEN m.generator IS NOT NULL THEN snowflake_nextval(m.generator) WHEN m.sequence IS NOT NULL THEN snowflake_nextval()
            WHEN NOT p.is_called THEN p.last_value - 1 WHEN s.seqincrement < 0 THEN greatest(s.seqstart, p.last_value)
            ELSE p.last_value END), CASE WHEN g.is_gone THEN m.tag END
     FROM pg_sequence AS s LEFT JOIN snowflake_ids.sequence_binding AS m ON m.sequence = s.seqrelid
            AND (m.checked OR snowflake_ids_internal.sequence_stands_at_end(m.sequence))
        LEFT JOIN LATERAL snowflake_ids_internal.sequence_position(CASE WHEN m.sequence IS NULL THEN s.seqrelid END) AS p ON true
        CROSS JOIN LATERAL (SELECT m.tag IS NOT NULL AND NOT EXISTS (SELECT FROM snowflake_ids.registry_server)
            AND NOT EXISTS (SELECT FROM snowflake_ids.segment AS g WHERE g.tag = m.tag) AS is_gone OFFSET 0) AS g
     WHERE s.seqrelid = $1",
);
static ALTER: Statement = Statement::new(
    "SELECT snowflake_ids_internal.as_owner($1, format('ALTER SEQUENCE %s %s', $1::regclass, $2))",
);

/// Fails if the current role does not manage tags, and so may not call this extension's internal functions.
pub fn check_manager(function: &str) -> Result<(), ErrorReport> {
    if extension::function("snowflake_ids_internal.has_workers()").is_some_and(role::may_execute) {
        return Ok(());
    }
    let current_user = role::name(role::current()).unwrap_or_default();
    let (function, role) = (function.to_owned(), quote_identifier(&current_user));
    Err(report(ColumnError::NotManager { function, role, current_user }))
}

/// The column that a tag is for.
#[derive(Clone, Copy)]
pub struct Place {
    /// A sequence that the column owns.
    pub sequence: Option<Oid>,
    /// The numbers that a new tag counts.
    pub course: Course,
    /// True if the caller named the tag.
    pub is_named: bool,
    /// True if this transaction has created the table.
    pub is_new: bool,
}

impl Place {
    /// A place of which nothing is known.
    pub const ANY: Self = Self { sequence: None, course: Course::DENSE, is_named: true, is_new: false };
}

/// Creates a tag or raises it, above `highest`. `owner` may move a new tag.
pub fn raise_tag(
    tag: &TextOut,
    highest: i64,
    most: Option<i64>,
    owner: Option<Oid>,
    place: Place,
) -> Result<(), ErrorReport> {
    raise_known(tag, facts::known_tag(tag, place.sequence)?.as_ref(), highest, most, owner, place)
}

fn raise_known(
    tag: &TextOut,
    known: Option<&KnownTag>,
    highest: i64,
    most: Option<i64>,
    owner: Option<Oid>,
    place: Place,
) -> Result<(), ErrorReport> {
    let name = tag.to_utf8_lossy();
    let seeded = SEED.first(&[tag.clone().into(), highest.into()], |row| row.get::<bool>(1));
    if seeded.map_err(spi)?.flatten() == Some(true) {
        if highest > 0 {
            tell(Notice::Reserved { tag: name, highest });
        }
        return Ok(());
    }
    let is_new = place.is_new && !place.is_named;
    let need = Need { tag: &name, highest, most, course: place.course, is_new };
    for step in provide(known, &need).map_err(report)? {
        let tag = || tag.clone().into();
        match step {
            TagStep::Drop => DROP.run(&[tag()]),
            TagStep::Create { max_value, increment, remainder } => {
                CREATE.run(&[tag(), max_value.into(), increment.into(), remainder.into()]).map_err(spi)?;
                if !place.is_named {
                    KEEP_MADE.run(&[tag()]).map_err(spi)?;
                }
                GRANT.run(&[tag(), owner.into()])
            }
            TagStep::Limit(limit) => {
                LIMIT.run(&[tag(), limit.into()]).map_err(spi)?;
                if known.is_some_and(|known| known.is_made) { KEEP_MADE.run(&[tag()]) } else { Ok(()) }
            }
            TagStep::Raise(highest) => RAISE.run(&[tag(), highest.into()]),
        }
        .map_err(spi)?;
    }
    Ok(())
}

/// Raises a tag above ids that columns hold, as after a restore.
pub fn raise_restored(tag: &TextOut, highest: i64) -> Result<(), ErrorReport> {
    raise_tag(tag, highest, None, None, Place::ANY)?;
    if citus::has_workers().map_err(spi)? {
        tell(Notice::Reserved { tag: tag.to_utf8_lossy(), highest });
    }
    Ok(())
}

/// Binds a sequence that is locked and has no obstacle to binding. Raises the tag above the sequence's numbers, or fails if the
/// next snowflake id is not above these numbers. A new tag ends at `most` at the latest.
pub fn bind(
    of: Oid,
    kind: IdKind,
    tag: Option<&TextOut>,
    generator: Option<&TextOut>,
    most: Option<i64>,
    is_named: bool,
) -> Result<(), ErrorReport> {
    let Some(terms) = sequence::terms(of) else { return Ok(()) };
    let increment = Increment::new(terms.increment).map_err(report)?;
    let tag = tag.filter(|_| kind == IdKind::Segment);
    let known = tag.map(|tag| facts::known_tag(tag, None)).transpose()?.flatten();
    let is_single = known.as_ref().is_some_and(|known| known.counts_as(terms.increment));
    let highest = increment.of_tag(is_single).reach(highest_number(of)?);
    let name = || facts::name_of(of);
    if highest == i64::MAX {
        return Err(report(ColumnError::AtMaximum(name()?)));
    }
    if let Some(tag) = tag {
        let most = Some(most.map_or(terms.max, |most| most.min(terms.max)));
        let owner = Relation::find(of).map(|relation| relation.owner());
        let place = Place { is_named, ..Place::ANY };
        raise_known(tag, known.as_ref(), highest.max(0), most, owner, place)?;
    } else {
        binding::check_layout(of, terms.increment, generator.map(TextOut::as_bytes)).map_err(report)?;
        let written = written(kind, None, generator);
        let next = take(&written)?;
        if next <= highest {
            let (sequence, written) = (name()?, written.to_utf8_lossy());
            return Err(report(ColumnError::SequenceAbove { sequence, highest, written, next }));
        }
    }
    put(of, terms.max, true)?;
    let [tag, generator] = [tag, generator].map(|name| name.and_then(name_of));
    binding::record(of, tag.as_ref(), highest, generator.as_ref(), is_single).map_err(report)
}

fn name_of(text: &TextOut) -> Option<TagText> {
    Tag::new(text.as_bytes()).map(TagText)
}

/// Binds a sequence of a distributed table on a worker. It counts in the node's own range, so no tag is raised above it.
pub fn bind_on_node(of: Oid, tag: Option<&TextOut>, generator: Option<&TextOut>) -> Result<(), ErrorReport> {
    let Some(terms) = sequence::terms(of) else { return Ok(()) };
    let reached = Increment::new(terms.increment).map_err(report)?.reach(highest_number(of)?);
    put(of, terms.max, true)?;
    let [tag, generator] = [tag, generator].map(|name| name.and_then(name_of));
    binding::record(of, tag.as_ref(), reached, generator.as_ref(), false).map_err(report)
}

/// Returns the highest number of a sequence.
pub fn highest_number(of: Oid) -> Result<i64, ErrorReport> {
    let found = HIGHEST.first(&[of.into()], |row| Ok((row.get::<i64>(1)?, row.get::<TextOut>(2)?)));
    match found.map_err(spi)?.unwrap_or_default() {
        (_, Some(tag)) => {
            Err(report(ColumnError::TagGone { tag: tag.to_utf8_lossy(), sequence: facts::name_of(of)? }))
        }
        (highest, None) => Ok(highest.unwrap_or_default()),
    }
}

/// Returns a default of this extension, as Postgres prints it.
pub fn written(kind: IdKind, tag: Option<&TextOut>, generator: Option<&TextOut>) -> TextOut {
    let name = if kind == IdKind::Segment { tag } else { generator };
    TextOut::of_bytes(&default::written(kind, name.map(TextOut::as_bytes)))
}

/// Returns the tag for a table or a sequence whose user names none; None if there is no such relation.
pub fn named_after(of: Oid) -> Option<TextOut> {
    let (schema, name) = relation::schema_and_name(of)?;
    let tag = named_after_names(schema.to_bytes(), name.to_bytes(), relation::quoted);
    Some(TextOut::of_bytes(&tag))
}

/// Returns the tag that a default names; None if the tag does not exist. Compares the default with the one that attach writes
/// for this tag, so the user's text is never executed. The caller needs no right on the tag.
pub fn tag_of_default(expression: Vec<u8>) -> Result<Option<TagText>, ErrorReport> {
    let Some(source) = SEGMENT.find() else { return Ok(None) };
    source.as_owner(|| registry::tag_of_default(expression)).map_err(spi)
}

/// Takes an id by a default of this extension.
pub fn take(written: &TextOut) -> Result<i64, ErrorReport> {
    let sql = CString::new([b"SELECT (", written.as_bytes(), b")::bigint"].concat()).unwrap_or_default();
    Ok(statement::number(&sql).map_err(spi)?.unwrap_or_default())
}

/// Stores the properties that a bound sequence had before.
pub fn remember(sequence: &Sequence, identity: Option<IdentityKind>) -> Result<(), ErrorReport> {
    let of_type = match sequence.base {
        Base::Smallint => pg_sys::INT2OID,
        Base::Integer => pg_sys::INT4OID,
        Base::Bigint | Base::Uuid | Base::Other => pg_sys::INT8OID,
    };
    let is_unlogged = sequence.persistence == 'u';
    let of = sequence.oid.into();
    let identity = identity.map(|kind| if kind == IdentityKind::Always { b'a' } else { b'd' }.cast_signed());
    binding::remember(of, Some(of_type), Some(sequence.cycles), Some(is_unlogged), identity).map_err(report)
}

/// Unbinds a sequence that is locked. It counts by itself again, above all issued numbers and above the id `above`. Returns
/// false if it is not bound.
pub fn unbind(of: Oid, above: i64) -> Result<bool, ErrorReport> {
    let Some(bound) = facts::bound_sequence(of)? else { return Ok(false) };
    let number = bound.number_above(highest_number(of)?.max(above)).map_err(report)?;
    binding::erase(of).map_err(report)?;
    put(of, number, false)?;
    let (changes, told) = bound.changes_to_restore(number);
    told.into_iter().for_each(tell);
    alter(of, changes.into_iter())?;
    Ok(true)
}

/// Sets a sequence's position. A rollback undoes the change, because ALTER SEQUENCE ... RESTART first writes a new file.
pub fn put(of: Oid, number: i64, is_called: bool) -> Result<(), ErrorReport> {
    if !sequence::is_of_subtransaction(of) {
        alter(of, ["RESTART"].into_iter())?;
    }
    Relation::find(of).inspect(|found| _ = found.as_owner(|| sequence::setval(of, number, is_called)));
    Ok(())
}

/// Unbinds a sequence of a distributed table on this node, where it continues in the node's own numbers, above the id `above`.
pub fn unbind_on_node(of: Oid, numbers: &Numbers, above: Option<i64>) -> Result<(), ErrorReport> {
    let Some(bound) = facts::bound_sequence(of)? else { return Ok(()) };
    let number = bound.number_on_node(numbers, above).map_err(report)?;
    binding::erase(of).map_err(report)?;
    put(of, number, false)
}

/// Alters a sequence as its owner.
pub fn alter(of: Oid, changes: impl Iterator<Item = &'static str>) -> Result<(), ErrorReport> {
    for change in changes {
        ALTER.run(&[of.into(), change.into()]).map_err(spi)?;
    }
    Ok(())
}
