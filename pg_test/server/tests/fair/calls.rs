//! How a login without rights calls each function that PUBLIC may call.
//!
//! Calls may use these variables of the loop: `k`, the number of the round; `n`, the number of the session; `t`, one of 900
//! tags; `g`, one of 100 generators; `i`, `u` and `x`, a snowflake id, a UUID of version 7 and an id in base 58; `own`, the
//! session's own table, and `mine`, the session's own tag.

/// A call in a loop.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// Arguments. The transaction is committed, and writes nothing.
    Reads(&'static str),
    /// Arguments. The transaction is committed, and writes rows.
    Writes(&'static str),
    /// The call that is needed before this one, and the arguments of this one. The transaction is committed.
    After(&'static str, &'static str),
    /// Arguments. The transaction is rolled back, because the call works only once.
    Undone(&'static str),
    /// Cannot be called by a login without rights, for this reason.
    Not(&'static str),
}

use Call::{After, Not, Reads, Undone, Writes};

const CITUS: Call = Not("needs Citus");
const CREATED: Call = Not("is for the tables that the extension's hook finds");
const MANAGES: Call = Not("needs the right to manage tags");

/// Returns the call of a function, whose name is as `regprocedure` shows it; None if there is no entry for it.
pub fn call_of(function: &str) -> Option<Call> {
    if let Some((_, call)) = CALLS.iter().find(|(name, _)| *name == function) {
        return Some(*call);
    }
    let (_, types) = function.split_once('(')?;
    match types {
        ")" => Some(Reads("")),
        _ if types.contains("internal") => Some(Not("only the server can pass an internal value")),
        // What reads an id takes it as any of these types, and then a generator.
        "bigint)" => Some(Reads("i")),
        "bigint,text)" => Some(Reads("i, g")),
        "text)" => Some(Reads("i::text")),
        "text,text)" => Some(Reads("i::text, g")),
        "uuid)" => Some(Reads("u")),
        "uuid,text)" => Some(Reads("u, g")),
        _ => None,
    }
}

/// Functions and their calls, where [`call_of`] does not tell them by the types.
pub const CALLS: &[(&str, Call)] = &[
    ("segment_currval(text)", After("segment_nextval(t)", "t")),
    ("segment_id(text)", Reads("t")),
    ("segment_nextval(text)", Reads("t")),
    ("segment_nextval_text(text)", Reads("t")),
    ("segment_nextvals(text,integer)", Reads("t, 100")),
    ("series_currval(text,bigint)", After("series_nextval('bigints', n)", "'bigints', n")),
    ("series_currval(text,text)", After("series_nextval('texts', mine)", "'texts', mine")),
    ("series_currval(text,uuid)", After("series_nextval('uuids', u)", "'uuids', u")),
    ("series_nextval(text,bigint)", Reads("'monotonic', n * 10000 + k")),
    ("series_nextval(text,text)", Writes("'texts', mine")),
    ("series_nextval(text,uuid)", Writes("'uuids', u")),
    ("series_nextval_text(text,bigint)", Reads("'monotonic', n * 10000 + k")),
    ("series_nextval_text(text,text)", Writes("'texts', mine")),
    ("series_nextval_text(text,uuid)", Writes("'uuids', u")),
    ("snowflake_between(bigint,timestamp with time zone,timestamp with time zone)", Reads("i, now(), now()")),
    (
        "snowflake_between(bigint,timestamp with time zone,timestamp with time zone,text)",
        Reads("i, now(), now(), g"),
    ),
    ("snowflake_between(uuid,timestamp with time zone,timestamp with time zone)", Reads("u, now(), now()")),
    ("snowflake_compose(timestamp with time zone,integer,integer,integer)", Reads("now(), 1, 1, 1")),
    (
        "snowflake_compose(timestamp with time zone,integer,integer,integer,text,integer)",
        Reads("now(), 1, 1, 1, g"),
    ),
    ("snowflake_decode_text(text,text)", Reads("x, 'base58'")),
    ("snowflake_decode_text(text,text,text)", Reads("'id_' || x, 'base58', 'id'")),
    ("snowflake_encode(bigint,text,boolean)", Reads("i, 'base58'")),
    ("snowflake_encode(bigint,text,text,boolean)", Reads("i, 'base58', 'id'")),
    ("snowflake_id(text)", Reads("g")),
    ("snowflake_id(unknown)", Reads("'g1'")),
    ("snowflake_ids.attach(regclass,name,text,text,text,text)", MANAGES),
    ("snowflake_ids.attach_all(regnamespace,text)", MANAGES),
    ("snowflake_ids.attach_plan(regnamespace,text)", MANAGES),
    ("snowflake_ids.audit(regclass,name,text,text[],text,integer)", Reads("own, 'id'")),
    ("snowflake_ids.bind_sequence(regclass,text,text,text)", MANAGES),
    ("snowflake_ids.detach(regclass,name,text)", MANAGES),
    ("snowflake_ids.detach_all(regnamespace,text)", MANAGES),
    ("snowflake_ids.has_segment_privilege(text,text)", Reads("t, 'USAGE'")),
    ("snowflake_ids.has_series_privilege(text,text)", Reads("'bigints', 'USAGE'")),
    ("snowflake_ids.layout_check(text,text)", Reads("'41/5/5/12 epoch=2019-01-01', g")),
    ("snowflake_ids.raise_all()", MANAGES),
    (
        "snowflake_ids.segment_alter(text,bigint,bigint,bigint,bigint,text,bigint,text,text,text)",
        Writes("mine, step => 1000 + k % 2"),
    ),
    ("snowflake_ids.segment_discard(text)", After("segment_nextval(mine)", "mine")),
    ("snowflake_ids.segment_drop(text)", Undone("mine")),
    ("snowflake_ids.segment_grant(text,text,text)", Writes("mine, 'public', 'USAGE'")),
    ("snowflake_ids.segment_raise(text,bigint)", Writes("mine, segment_nextval(mine) + 10")),
    ("snowflake_ids.segment_revoke(text,text,text)", Writes("mine, 'public', 'UPDATE'")),
    ("snowflake_ids.segment_set(text,numeric,boolean)", Writes("mine, 0, true")),
    (
        "snowflake_ids.series_alter(text,bigint,text,text,text,text,text,integer,integer)",
        Writes("'own', description => k::text"),
    ),
    ("snowflake_ids.series_attach(regclass,name,text,name)", Undone("own, 'number', 'own', 'key'")),
    ("snowflake_ids.series_detach(regclass,name)", Undone("own, 'attached'")),
    ("snowflake_ids.series_distribute(text,regclass)", CITUS),
    ("snowflake_ids.series_drop(text)", Undone("'unused'")),
    ("snowflake_ids.series_grant(text,text,text)", Writes("'own', 'public', 'USAGE'")),
    ("snowflake_ids.series_revoke(text,text,text)", Writes("'own', 'public', 'UPDATE'")),
    ("snowflake_ids.series_set(text,bigint,bigint,boolean)", Writes("'own', n, k, true")),
    ("snowflake_ids.series_set(text,text,bigint,boolean)", Writes("'own_texts', mine, k, true")),
    ("snowflake_ids.series_set(text,uuid,bigint,boolean)", Writes("'own_uuids', u, k, true")),
    ("snowflake_ids.unbind_sequence(regclass)", MANAGES),
    ("snowflake_ids.use_citus(name)", CITUS),
    ("snowflake_ids_internal.as_owner(oid,text)", Reads("own, 'select 1'")),
    ("snowflake_ids_internal.attach_created(oid,integer,text)", CREATED),
    ("snowflake_ids_internal.attach_like(regclass,name,regclass)", CREATED),
    ("snowflake_ids_internal.audit_check(regclass,name)", Reads("own, 'id'")),
    ("snowflake_ids_internal.audit_check_connection(text)", Not("needs a foreign server")),
    ("snowflake_ids_internal.audit_connect(integer,text,regclass,name)", Not("needs a foreign server")),
    ("snowflake_ids_internal.audit_tag(text)", Reads("t")),
    ("snowflake_ids_internal.audit_time(bigint)", Reads("k")),
    ("snowflake_ids_internal.base_type(oid)", Reads("20")),
    ("snowflake_ids_internal.change_all(boolean,regnamespace,text)", MANAGES),
    ("snowflake_ids_internal.check_manages_tags(text)", MANAGES),
    ("snowflake_ids_internal.citus_unite(text)", CITUS),
    (
        "snowflake_ids_internal.generator_check(text,text,integer,integer,text,integer)",
        Reads("g, '41/5/5/12', null, null, null, null"),
    ),
    ("snowflake_ids_internal.generator_unknown(text)", Not("always fails")),
    ("snowflake_ids_internal.layout_parts(text)", Reads("g")),
    ("snowflake_ids_internal.layout_seconds_left(text)", Reads("'41/5/5/12'")),
    ("snowflake_ids_internal.layout_status(text)", Reads("'41/5/5/12 epoch=2020-04-09'")),
    ("snowflake_ids_internal.lock_to_read(oid)", Reads("own")),
    ("snowflake_ids_internal.page_of(text)", Reads("'{}'")),
    ("snowflake_ids_internal.progress_end(text)", Reads("'audit'")),
    ("snowflake_ids_internal.progress_enter(text,oid,text)", Reads("'audit', own, 'reading ids'")),
    ("snowflake_ids_internal.qualified_name(regclass)", Reads("own")),
    ("snowflake_ids_internal.read_as_owner(oid,text)", Reads("own, 'select 1::text'")),
    ("snowflake_ids_internal.registry_health(integer)", Reads("1")),
    ("snowflake_ids_internal.run_as_owner(oid,text)", Reads("own, 'select 1'")),
    ("snowflake_ids_internal.segment_check_tag(text)", Reads("t")),
    ("snowflake_ids_internal.segment_promotions(bigint,integer,bigint)", Reads("1, 1, 1")),
    ("snowflake_ids_internal.segment_slots(boolean)", Reads("false")),
    (
        "snowflake_ids_internal.sequence_currval(regclass)",
        After("snowflake_ids_internal.sequence_nextval('s')", "'s'"),
    ),
    ("snowflake_ids_internal.sequence_lastval()", After("snowflake_ids_internal.sequence_nextval('s')", "")),
    ("snowflake_ids_internal.sequence_nextval(regclass)", Writes("'s'")),
    ("snowflake_ids_internal.sequence_recorded(regclass,bigint)", Reads("'s', i")),
    ("snowflake_ids_internal.sequence_setval(regclass,bigint)", Writes("'s', k")),
    ("snowflake_ids_internal.sequence_setval(regclass,bigint,boolean)", Writes("'s', k, true")),
    ("snowflake_ids_internal.sequence_stands_at_end(oid)", Reads("'s'::regclass")),
    (
        "snowflake_ids_internal.series_check(text,text,text,bigint,bigint,text,text,text,text,integer,integer,integer,text)",
        Reads("'z', 'gapless', 'bigint', 1, 9, null, 'UTC', null, null, null, null, null, 'global'"),
    ),
    ("snowflake_ids_internal.series_raise(text,bigint,bigint)", Writes("'own', n, k")),
    ("snowflake_ids_internal.series_raise(text,text,bigint)", Writes("'own_texts', mine, k")),
    ("snowflake_ids_internal.series_raise(text,uuid,bigint)", Writes("'own_uuids', u, k")),
    ("snowflake_interval(interval)", Reads("'1 day'")),
    ("snowflake_interval(interval,text)", Reads("'1 day', g")),
    ("snowflake_lastval()", After("snowflake_nextval()", "")),
    ("snowflake_max_id(timestamp with time zone)", Reads("now()")),
    ("snowflake_max_id(timestamp with time zone,text)", Reads("now(), g")),
    ("snowflake_min_id(timestamp with time zone)", Reads("now()")),
    ("snowflake_min_id(timestamp with time zone,text)", Reads("now(), g")),
    ("snowflake_min_uuid(timestamp with time zone)", Reads("now()")),
    ("snowflake_nextval(text)", Reads("g")),
    ("snowflake_nextvals(integer)", Reads("100")),
    ("snowflake_nextvals(integer,text)", Reads("100, g")),
    ("snowflake_try_decode_text(text,text)", Reads("x, 'base58'")),
    ("snowflake_try_decode_text(text,text,text)", Reads("'id_' || x, 'base58', 'id'")),
    ("snowflake_uuid(text)", Reads("g")),
    ("snowflake_uuid_text(text)", Reads("g")),
];
