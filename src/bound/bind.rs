//! Writes to the table of bound sequences, with the rights of the table's owner. The caller has checked that the role owns
//! the sequence.

use super::cache;
use super::error::SequenceError;
use crate::named;
use crate::pg::report::{raise, spi};
use crate::pg::sequence;
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use crate::pg::text::TextOut;
use crate::pg::{guc, server, transaction};
use crate::settings;
use crate::shared::generator::SHARED;
use crate::store::bound::Bound;
use crate::store::tables::SEQUENCE_BINDING;
use crate::tag::error::SegmentError;
use pgrx::pg_sys::Oid;
use pgrx::spi::SpiError;
use snowflake_ids_core::bound::Increment;
use snowflake_ids_core::column::tag::LeftTag;

/// Removes the rows of dropped sequences, and returns their tags. Skips rows that other transactions have locked.
static FORGET_DROPPED: Statement = Statement::of_few(
    "DELETE FROM snowflake_ids.sequence_binding AS b WHERE b.sequence OPERATOR(pg_catalog.=) ANY (ARRAY(
         SELECT g.sequence FROM snowflake_ids.sequence_binding AS g WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_sequence AS s
             WHERE s.seqrelid OPERATOR(pg_catalog.=) g.sequence) FOR UPDATE SKIP LOCKED)) RETURNING b.tag",
);

/// What the core needs to know about tags of dropped sequences, as JSON. A default that names other objects, too, may name any tag:
/// another session may drop these objects meanwhile, so that the default cannot be printed.
static LEFT: Statement = Statement::of_few(
    "WITH calls AS MATERIALIZED (
        SELECT d.classid, d.objid FROM pg_depend AS d WHERE d.refclassid = 'pg_proc'::regclass
            AND d.refobjid IN (SELECT to_regprocedure(f) FROM unnest(ARRAY['segment_nextval(text)', 'segment_id(text)', 'segment_nextval_text(text)']) AS f)
     ), written AS MATERIALIZED (
        SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = c.classid AND d.objid = c.objid
                AND d.refclassid NOT IN ('pg_type'::regclass, 'pg_proc'::regclass) AND d.refobjid <> f.adrelid)
            THEN pg_get_expr(f.adbin, 0) END AS expression
        FROM calls AS c JOIN pg_attrdef AS f ON c.classid = 'pg_attrdef'::regclass AND f.oid = c.objid
            JOIN pg_class AS t ON t.oid = f.adrelid AND NOT pg_is_other_temp_schema(t.relnamespace)
        UNION ALL SELECT pg_get_expr(t.typdefaultbin, 0) FROM calls AS c JOIN pg_type AS t ON c.classid = 'pg_type'::regclass AND t.oid = c.objid
     )
     SELECT json_build_object('tag', s.tag, 'is_made', s.is_made,
        'is_restricted', EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = s.tag),
        'is_used', EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b WHERE b.tag = s.tag) OR EXISTS (SELECT FROM written AS w
            WHERE w.expression IS NULL OR strpos(w.expression, snowflake_ids_internal.call_with('', s.tag) COLLATE \"C\") > 0),
        'is_elsewhere', snowflake_ids_internal.has_workers() OR EXISTS (SELECT FROM snowflake_ids.registry_server))::text
     FROM snowflake_ids.segment AS s WHERE s.tag COLLATE \"C\" = ANY ($1)",
);
static DROP_TAG: Statement = Statement::new("SELECT snowflake_ids_internal.segment_drop($1)");
static COUNT: Statement = Statement::new(
    "SELECT count(*) FROM (SELECT FROM snowflake_ids.sequence_binding AS b
         WHERE b.sequence OPERATOR(pg_catalog.<>) $1 LIMIT $2) AS b",
);
static RECORD: Statement = Statement::new(
    "INSERT INTO snowflake_ids.sequence_binding AS b (sequence, tag, last_number, generator, single) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (sequence) DO UPDATE SET tag = excluded.tag, last_number = excluded.last_number,
         generator = excluded.generator, bound_at = excluded.bound_at, single = excluded.single, checked = true",
);
static REMEMBER: Statement = Statement::new(
    "UPDATE snowflake_ids.sequence_binding AS b SET type = $2, cycles = $3, unlogged = $4, identity = $5
     WHERE b.sequence OPERATOR(pg_catalog.=) $1",
);
static KEEP_BIGINT: Statement = Statement::new(
    "UPDATE snowflake_ids.sequence_binding AS b SET type = 'pg_catalog.int8'::pg_catalog.regtype
     WHERE b.sequence OPERATOR(pg_catalog.=) $1 AND b.type IS NULL",
);
static SET_IDENTITY: Statement = Statement::new(
    "UPDATE snowflake_ids.sequence_binding AS b SET identity = $2 WHERE b.sequence OPERATOR(pg_catalog.=) $1",
);
static SET_UNLOGGED: Statement = Statement::new(
    "UPDATE snowflake_ids.sequence_binding AS b SET unlogged = $2 WHERE b.sequence OPERATOR(pg_catalog.=) $1",
);
static REBIND: Statement = Statement::new(
    "UPDATE snowflake_ids.sequence_binding AS b SET sequence = $2, identity = NULL, type = NULL
     WHERE b.sequence OPERATOR(pg_catalog.=) $1",
);
static ERASE: Statement = Statement::new(
    "DELETE FROM snowflake_ids.sequence_binding AS b WHERE b.sequence OPERATOR(pg_catalog.=) $1",
);
static CONFIRM: Statement = Statement::new(
    "UPDATE snowflake_ids.sequence_binding AS b SET checked = true
     WHERE b.sequence OPERATOR(pg_catalog.=) (SELECT r.sequence FROM snowflake_ids.sequence_binding AS r
         WHERE r.sequence OPERATOR(pg_catalog.=) $1 AND NOT r.checked FOR UPDATE SKIP LOCKED)",
);

/// Records that a sequence is bound. The sequence must stand at its end (its maximum). `is_single` is true if a call takes one id
/// of the tag, which has the sequence's increment.
pub fn record(
    of: Oid,
    tag: Option<&TagText>,
    last_number: i64,
    generator: Option<&TagText>,
    is_single: bool,
) -> Result<(), SequenceError> {
    if !cache::stands_at_end(of) {
        return Err(SequenceError::NotAtEnd(sequence::name(of)));
    }
    with_table(of, || {
        FORGET_DROPPED.run(&[])?;
        let most = settings::max_bound_sequences();
        let others = COUNT.value::<i64>(&[of.into(), most.into()])?;
        if others.is_some_and(|others| others >= most) {
            return Err(SequenceError::TooMany(most));
        }
        let (tag, generator) = (tag.copied(), generator.copied());
        Ok(RECORD.run(&[of.into(), tag.into(), last_number.into(), generator.into(), is_single.into()])?)
    })
}

/// Fails if a sequence with this increment cannot give snowflake ids of the server's layout, or of a generator's.
pub fn check_layout(of: Oid, increment: i64, generator: Option<&[u8]>) -> Result<(), SequenceError> {
    let increment = Increment::new(increment)?;
    let named = generator.map(named::look_up).transpose();
    let named = named.map_err(|error| SequenceError::of_generator(error.into(), of))?;
    let layout = named.map(|named| named.named().layout).or_else(|| SHARED.get().map(|shared| shared.layout));
    Ok(layout.map_or(Ok(()), |layout| increment.check_layout(&layout))?)
}

/// Stores the properties of a bound sequence that unbinding restores.
pub fn remember(
    of: Oid,
    of_type: Option<Oid>,
    cycles: Option<bool>,
    unlogged: Option<bool>,
    identity: Option<i8>,
) -> Result<(), SequenceError> {
    let values = [of.into(), of_type.into(), cycles.into(), unlogged.into(), identity.into()];
    with_table(of, || Ok(REMEMBER.run(&values)?))
}

/// Stores that a sequence was bigint before it was bound, unless its former type is known. Otherwise, unbinding would give it
/// the type of its column, which may be narrower.
pub fn keep_bigint(of: Oid) -> Result<(), SequenceError> {
    with_table(of, || Ok(KEEP_BIGINT.run(&[of.into()])?))
}

/// Stores the kind of identity that the column of a bound sequence was.
pub fn set_identity(of: Oid, letter: i8) -> Result<(), SequenceError> {
    with_table(of, || Ok(SET_IDENTITY.run(&[of.into(), letter.into()])?))
}

/// Stores whether a sequence is unlogged after it is unbound.
pub fn set_unlogged(of: Oid, unlogged: bool) -> Result<(), SequenceError> {
    with_table(of, || Ok(SET_UNLOGGED.run(&[of.into(), unlogged.into()])?))
}

/// Binds a sequence in place of another one, which is dropped.
pub fn rebind(former: Oid, new: Oid) -> Result<(), SequenceError> {
    with_table(new, || Ok(REBIND.run(&[former.into(), new.into()])?))
}

pub fn erase(of: Oid) -> Result<(), SequenceError> {
    with_table(of, || Ok(ERASE.run(&[of.into()])?))
}

fn with_table(of: Oid, work: impl FnOnce() -> Result<(), SequenceError>) -> Result<(), SequenceError> {
    let table = SEQUENCE_BINDING.find().ok_or_else(|| SequenceError::of_tag(SegmentError::NoTable, of))?;
    table.as_owner(work)
}

/// Removes the rows of dropped sequences. Does nothing if the removal would need a wait for a lock: a remaining row does no
/// harm before a new sequence gets the same oid, and the next binding removes the row.
pub fn forget_dropped_at_once() {
    at_once(|| FORGET_DROPPED.run(&[]));
}

/// Removes the rows of dropped sequences, and the tags that go with them and with dropped columns, whose tags are given. Returns
/// false if that would need a wait for a lock on the table.
pub fn drop_left(tags: Vec<TextOut>) -> bool {
    at_once(|| {
        let dropped = FORGET_DROPPED.all(&[], |row| row.get::<TextOut>(1))?;
        let tags: Vec<TextOut> = dropped.into_iter().flatten().chain(tags).collect();
        if tags.is_empty() {
            return Ok(());
        }
        let read = || LEFT.all(&[tags.into()], |row| row.get::<TextOut>(1));
        for tag in guc::with_printed_forms(read)?.into_iter().flatten() {
            let read: Result<LeftTag, _> = serde_json::from_str(&tag.to_utf8_lossy());
            if let Some(tag) = read.ok().filter(LeftTag::goes).and_then(|left| TextOut::of(left.tag)) {
                DROP_TAG.run(&[tag.into()])?;
            }
        }
        Ok(())
    })
}

/// Marks a sequence's row as checked if the sequence stands at its end. A restored row may be unchecked at first, because a
/// dump may load the row before it sets the sequence to its end. A restart of the sequence restarts its tag only if the row
/// is checked. Does not wait for locks.
pub fn confirm(of: Oid) {
    // In REPEATABLE READ, the update would fail on a row that another session has marked since the snapshot.
    if matches!(cache::row_at_once(of), Ok(Some(Bound { is_checked: false, .. })))
        && server::is_writable()
        && transaction::sees_new_commits()
        && cache::stands_at_end(of)
    {
        at_once(|| CONFIRM.run(&[of.into()]));
    }
}

fn at_once(work: impl FnOnce() -> Result<(), SpiError>) -> bool {
    let done = SEQUENCE_BINDING.find().and_then(|table| table.as_owner_at_once(|| cache::tidy(work)));
    done.map(|done| done.unwrap_or_else(|error| raise(spi(error)))).is_some()
}
