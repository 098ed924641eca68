//! How a login without rights calls each function that PUBLIC may call.
//!
//! Calls may use these variables of the loop: `k`, the number of the round; `n`, the number of the session; `t`, one of 900
//! tags; `g`, one of 100 generators; `i`, `u` and `x`, a snowflake id, a UUID of version 7 and an id in base 58; `own`, the
//! session's own table, and `mine`, the session's own tag.

/// A call in a loop.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// An expression. Its transaction is committed, and writes nothing.
    Reads(&'static str),
    /// An expression. Its transaction is committed, and writes rows.
    Writes(&'static str),
    /// An expression. Its transaction is rolled back, because the call works only once.
    Undone(&'static str),
    /// Cannot be called by a login without rights, for this reason.
    Not(&'static str),
}

use Call::{Not, Reads, Undone, Writes};

const INTERNAL: Call = Not("only the server can pass an internal value");
const CITUS: Call = Not("needs Citus");
const MANAGES: Call = Not("needs the right to manage tags");

/// The functions, by their names as `regprocedure` shows them, and their calls.
pub const CALLS: &[(&str, Call)] = &[
    ("nextval_support(internal)", INTERNAL),
    ("segment_currval(text)", Reads("segment_nextval(t), segment_currval(t)")),
    ("segment_id(text)", Reads("segment_id(t)")),
    ("segment_nextval(text)", Reads("segment_nextval(t)")),
    ("segment_nextval_in_copy(text,internal)", INTERNAL),
    ("segment_nextval_text(text)", Reads("segment_nextval_text(t)")),
    ("segment_nextvals(text,integer)", Reads("segment_nextvals(t, 100)")),
    ("series_currval(text,bigint)", Writes("series_nextval('bigints', n), series_currval('bigints', n)")),
    ("series_currval(text,text)", Writes("series_nextval('texts', mine), series_currval('texts', mine)")),
    ("series_currval(text,uuid)", Writes("series_nextval('uuids', u), series_currval('uuids', u)")),
    ("series_nextval(text,bigint)", Reads("series_nextval('monotonic', n * 10000 + k)")),
    ("series_nextval(text,text)", Writes("series_nextval('texts', mine)")),
    ("series_nextval(text,uuid)", Writes("series_nextval('uuids', u)")),
    ("series_nextval_text(text,bigint)", Reads("series_nextval_text('monotonic', n * 10000 + k)")),
    ("series_nextval_text(text,text)", Writes("series_nextval_text('texts', mine)")),
    ("series_nextval_text(text,uuid)", Writes("series_nextval_text('uuids', u)")),
    (
        "snowflake_between(bigint,timestamp with time zone,timestamp with time zone)",
        Reads("snowflake_between(i, now(), now())"),
    ),
    (
        "snowflake_between(bigint,timestamp with time zone,timestamp with time zone,text)",
        Reads("snowflake_between(i, now(), now(), g)"),
    ),
    (
        "snowflake_between(uuid,timestamp with time zone,timestamp with time zone)",
        Reads("snowflake_between(u, now(), now())"),
    ),
    (
        "snowflake_compose(timestamp with time zone,integer,integer,integer)",
        Reads("snowflake_compose(now(), 1, 1, 1)"),
    ),
    (
        "snowflake_compose(timestamp with time zone,integer,integer,integer,text,integer)",
        Reads("snowflake_compose(now(), 1, 1, 1, g)"),
    ),
    ("snowflake_datacenter_id(bigint)", Reads("snowflake_datacenter_id(i)")),
    ("snowflake_datacenter_id(bigint,text)", Reads("snowflake_datacenter_id(i, g)")),
    ("snowflake_datacenter_id(text)", Reads("snowflake_datacenter_id(i::text)")),
    ("snowflake_datacenter_id(text,text)", Reads("snowflake_datacenter_id(i::text, g)")),
    ("snowflake_datacenter_id(uuid)", Reads("snowflake_datacenter_id(u)")),
    ("snowflake_datacenter_id(uuid,text)", Reads("snowflake_datacenter_id(u, g)")),
    ("snowflake_decode(bigint)", Reads("snowflake_decode(i)")),
    ("snowflake_decode(bigint,text)", Reads("snowflake_decode(i, g)")),
    ("snowflake_decode_json(bigint)", Reads("snowflake_decode_json(i)")),
    ("snowflake_decode_json(bigint,text)", Reads("snowflake_decode_json(i, g)")),
    ("snowflake_decode_text(text,text)", Reads("snowflake_decode_text(x, 'base58')")),
    ("snowflake_decode_text(text,text,text)", Reads("snowflake_decode_text('id_' || x, 'base58', 'id')")),
    ("snowflake_encode(bigint,text,boolean)", Reads("snowflake_encode(i, 'base58')")),
    ("snowflake_encode(bigint,text,text,boolean)", Reads("snowflake_encode(i, 'base58', 'id')")),
    ("snowflake_extension_keep()", Reads("snowflake_extension_keep()")),
    ("snowflake_id()", Reads("snowflake_id()")),
    ("snowflake_id(text)", Reads("snowflake_id(g)")),
    ("snowflake_id(unknown)", Reads("snowflake_id('g1')")),
    ("snowflake_ids.attach(regclass,name,text,text,text,text)", MANAGES),
    ("snowflake_ids.attach_all(regnamespace,text)", MANAGES),
    ("snowflake_ids.attach_plan(regnamespace,text)", MANAGES),
    ("snowflake_ids.audit(regclass,name,text,text[],text,integer)", Reads("snowflake_ids.audit(own, 'id')")),
    ("snowflake_ids.bind_sequence(regclass,text,text,text)", MANAGES),
    ("snowflake_ids.detach(regclass,name,text)", MANAGES),
    ("snowflake_ids.detach_all(regnamespace,text)", MANAGES),
    (
        "snowflake_ids.has_segment_privilege(text,text)",
        Reads("snowflake_ids.has_segment_privilege(t, 'USAGE')"),
    ),
    (
        "snowflake_ids.has_series_privilege(text,text)",
        Reads("snowflake_ids.has_series_privilege('bigints', 'USAGE')"),
    ),
    (
        "snowflake_ids.layout_check(text,text)",
        Reads("snowflake_ids.layout_check('41/5/5/12 epoch=2019-01-01', g)"),
    ),
    ("snowflake_ids.raise_all()", MANAGES),
    ("snowflake_ids.report()", Reads("snowflake_ids.report()")),
    (
        "snowflake_ids.segment_alter(text,bigint,bigint,bigint,bigint,text,bigint,text,text,text)",
        Writes("snowflake_ids.segment_alter(mine, step => 1000 + k % 2)"),
    ),
    (
        "snowflake_ids.segment_discard(text)",
        Writes("segment_nextval(mine), snowflake_ids.segment_discard(mine)"),
    ),
    ("snowflake_ids.segment_drop(text)", Undone("snowflake_ids.segment_drop(mine)")),
    (
        "snowflake_ids.segment_grant(text,text,text)",
        Writes("snowflake_ids.segment_grant(mine, 'public', 'USAGE')"),
    ),
    (
        "snowflake_ids.segment_raise(text,bigint)",
        Writes("snowflake_ids.segment_raise(mine, segment_nextval(mine) + 10)"),
    ),
    (
        "snowflake_ids.segment_revoke(text,text,text)",
        Writes("snowflake_ids.segment_revoke(mine, 'public', 'UPDATE')"),
    ),
    ("snowflake_ids.segment_set(text,numeric,boolean)", Writes("snowflake_ids.segment_set(mine, 0, true)")),
    (
        "snowflake_ids.series_alter(text,bigint,text,text,text,text,text,integer,integer)",
        Writes("snowflake_ids.series_alter('own', description => k::text)"),
    ),
    (
        "snowflake_ids.series_attach(regclass,name,text,name)",
        Undone("snowflake_ids.series_attach(own, 'number', 'own', 'key')"),
    ),
    ("snowflake_ids.series_detach(regclass,name)", Undone("snowflake_ids.series_detach(own, 'attached')")),
    ("snowflake_ids.series_distribute(text,regclass)", CITUS),
    ("snowflake_ids.series_drop(text)", Undone("snowflake_ids.series_drop('unused')")),
    (
        "snowflake_ids.series_grant(text,text,text)",
        Writes("snowflake_ids.series_grant('own', 'public', 'USAGE')"),
    ),
    (
        "snowflake_ids.series_revoke(text,text,text)",
        Writes("snowflake_ids.series_revoke('own', 'public', 'UPDATE')"),
    ),
    (
        "snowflake_ids.series_set(text,bigint,bigint,boolean)",
        Writes("snowflake_ids.series_set('own', n, k, true)"),
    ),
    (
        "snowflake_ids.series_set(text,text,bigint,boolean)",
        Writes("snowflake_ids.series_set('own_texts', mine, k, true)"),
    ),
    (
        "snowflake_ids.series_set(text,uuid,bigint,boolean)",
        Writes("snowflake_ids.series_set('own_uuids', u, k, true)"),
    ),
    ("snowflake_ids.status()", Reads("snowflake_ids.status()")),
    ("snowflake_ids.status_history()", Reads("snowflake_ids.status_history()")),
    ("snowflake_ids.status_page()", Reads("snowflake_ids.status_page()")),
    ("snowflake_ids.unbind_sequence(regclass)", MANAGES),
    ("snowflake_ids.use_citus(name)", CITUS),
    ("snowflake_ids_internal.as_owner(oid,text)", Reads("snowflake_ids_internal.as_owner(own, 'select 1')")),
    (
        "snowflake_ids_internal.attach_created(oid,integer,text)",
        Not("is for the tables that the extension's event trigger finds"),
    ),
    ("snowflake_ids_internal.attention()", Reads("snowflake_ids_internal.attention()")),
    (
        "snowflake_ids_internal.audit_check(regclass,name)",
        Reads("snowflake_ids_internal.audit_check(own, 'id')"),
    ),
    ("snowflake_ids_internal.audit_check_connection(text)", Not("needs a foreign server")),
    ("snowflake_ids_internal.audit_connect(integer,text,regclass,name)", Not("needs a foreign server")),
    ("snowflake_ids_internal.audit_tag(text)", Reads("snowflake_ids_internal.audit_tag(t)")),
    ("snowflake_ids_internal.audit_time(bigint)", Reads("snowflake_ids_internal.audit_time(k)")),
    ("snowflake_ids_internal.base_type(oid)", Reads("snowflake_ids_internal.base_type(20)")),
    ("snowflake_ids_internal.check_manages_tags(text)", MANAGES),
    ("snowflake_ids_internal.copied_at()", Reads("snowflake_ids_internal.copied_at()")),
    ("snowflake_ids_internal.copies_look_alike()", Reads("snowflake_ids_internal.copies_look_alike()")),
    ("snowflake_ids_internal.failed_calls()", Reads("snowflake_ids_internal.failed_calls()")),
    (
        "snowflake_ids_internal.generator_check(text,text,integer,integer,text,integer)",
        Reads("snowflake_ids_internal.generator_check(g, '41/5/5/12', null, null, null, null)"),
    ),
    ("snowflake_ids_internal.generator_unknown(text)", Not("always fails")),
    ("snowflake_ids_internal.is_preloaded()", Reads("snowflake_ids_internal.is_preloaded()")),
    ("snowflake_ids_internal.is_restored()", Reads("snowflake_ids_internal.is_restored()")),
    ("snowflake_ids_internal.launcher_runs()", Reads("snowflake_ids_internal.launcher_runs()")),
    ("snowflake_ids_internal.layout_parts(text)", Reads("snowflake_ids_internal.layout_parts(g)")),
    (
        "snowflake_ids_internal.layout_seconds_left(text)",
        Reads("snowflake_ids_internal.layout_seconds_left('41/5/5/12')"),
    ),
    (
        "snowflake_ids_internal.layout_status(text)",
        Reads("snowflake_ids_internal.layout_status('41/5/5/12 epoch=2020-04-09')"),
    ),
    ("snowflake_ids_internal.library_version()", Reads("snowflake_ids_internal.library_version()")),
    ("snowflake_ids_internal.lock_to_read(oid)", Reads("snowflake_ids_internal.lock_to_read(own)")),
    ("snowflake_ids_internal.page_of(text)", Reads("snowflake_ids_internal.page_of('{}')")),
    ("snowflake_ids_internal.presets()", Reads("snowflake_ids_internal.presets()")),
    ("snowflake_ids_internal.server_remedy()", Reads("snowflake_ids_internal.server_remedy()")),
    ("snowflake_ids_internal.progress_end(text)", Reads("snowflake_ids_internal.progress_end('audit')")),
    (
        "snowflake_ids_internal.progress_enter(text,oid,text)",
        Reads("snowflake_ids_internal.progress_enter('audit', own, 'reading ids')"),
    ),
    ("snowflake_ids_internal.progress_slots()", Reads("snowflake_ids_internal.progress_slots()")),
    ("snowflake_ids_internal.qualified_name(regclass)", Reads("snowflake_ids_internal.qualified_name(own)")),
    ("snowflake_ids_internal.random_number()", Reads("snowflake_ids_internal.random_number()")),
    (
        "snowflake_ids_internal.read_as_owner(oid,text)",
        Reads("snowflake_ids_internal.read_as_owner(own, 'select 1::text')"),
    ),
    ("snowflake_ids_internal.registry_health(integer)", Reads("snowflake_ids_internal.registry_health(1)")),
    (
        "snowflake_ids_internal.run_as_owner(oid,text)",
        Reads("snowflake_ids_internal.run_as_owner(own, 'select 1')"),
    ),
    ("snowflake_ids_internal.safe_id_holders()", Reads("snowflake_ids_internal.safe_id_holders()")),
    ("snowflake_ids_internal.segment_check_tag(text)", Reads("snowflake_ids_internal.segment_check_tag(t)")),
    ("snowflake_ids_internal.segment_copied()", Reads("snowflake_ids_internal.segment_copied()")),
    (
        "snowflake_ids_internal.segment_promotions(bigint,integer,bigint)",
        Reads("snowflake_ids_internal.segment_promotions(1, 1, 1)"),
    ),
    ("snowflake_ids_internal.segment_slots(boolean)", Reads("snowflake_ids_internal.segment_slots(false)")),
    ("snowflake_ids_internal.segment_timeline()", Reads("snowflake_ids_internal.segment_timeline()")),
    ("snowflake_ids_internal.segment_totals()", Reads("snowflake_ids_internal.segment_totals()")),
    (
        "snowflake_ids_internal.sequence_currval(regclass)",
        Writes("snowflake_ids_internal.sequence_nextval('s'), snowflake_ids_internal.sequence_currval('s')"),
    ),
    (
        "snowflake_ids_internal.sequence_lastval()",
        Writes("snowflake_ids_internal.sequence_nextval('s'), snowflake_ids_internal.sequence_lastval()"),
    ),
    (
        "snowflake_ids_internal.sequence_nextval(regclass)",
        Writes("snowflake_ids_internal.sequence_nextval('s')"),
    ),
    (
        "snowflake_ids_internal.sequence_recorded(regclass,bigint)",
        Reads("snowflake_ids_internal.sequence_recorded('s', i)"),
    ),
    (
        "snowflake_ids_internal.sequence_setval(regclass,bigint)",
        Writes("snowflake_ids_internal.sequence_setval('s', k)"),
    ),
    (
        "snowflake_ids_internal.sequence_setval(regclass,bigint,boolean)",
        Writes("snowflake_ids_internal.sequence_setval('s', k, true)"),
    ),
    (
        "snowflake_ids_internal.sequence_stands_at_end(oid)",
        Reads("snowflake_ids_internal.sequence_stands_at_end('s'::regclass)"),
    ),
    (
        "snowflake_ids_internal.series_check(text,text,text,bigint,bigint,text,text,text,text,integer,integer,integer)",
        Reads(
            "snowflake_ids_internal.series_check('z', 'gapless', 'bigint', 1, 9, null, 'UTC', null, null, null, null, null)",
        ),
    ),
    (
        "snowflake_ids_internal.series_check_scope(text,text)",
        Reads("snowflake_ids_internal.series_check_scope('gapless', 'global')"),
    ),
    ("snowflake_ids_internal.series_make_shards(text,oid)", CITUS),
    (
        "snowflake_ids_internal.series_make_trigger(text,oid,text,text)",
        Undone("snowflake_ids_internal.series_make_trigger('own', own, 'number', 'key')"),
    ),
    (
        "snowflake_ids_internal.series_raise(text,bigint,bigint)",
        Writes("snowflake_ids_internal.series_raise('own', n, k)"),
    ),
    (
        "snowflake_ids_internal.series_raise(text,text,bigint)",
        Writes("snowflake_ids_internal.series_raise('own_texts', mine, k)"),
    ),
    (
        "snowflake_ids_internal.series_raise(text,uuid,bigint)",
        Writes("snowflake_ids_internal.series_raise('own_uuids', u, k)"),
    ),
    (
        "snowflake_ids_internal.series_to_attach(text,oid)",
        Reads("snowflake_ids_internal.series_to_attach('own', own)"),
    ),
    (
        "snowflake_ids_internal.series_trigger_of(regclass,name)",
        Reads("snowflake_ids_internal.series_trigger_of(own, 'attached')"),
    ),
    ("snowflake_ids_internal.system_identifier()", Reads("snowflake_ids_internal.system_identifier()")),
    ("snowflake_ids_internal.timeline()", Reads("snowflake_ids_internal.timeline()")),
    ("snowflake_interval(interval)", Reads("snowflake_interval('1 day')")),
    ("snowflake_interval(interval,text)", Reads("snowflake_interval('1 day', g)")),
    ("snowflake_lastval()", Reads("snowflake_nextval(), snowflake_lastval()")),
    ("snowflake_max_id(timestamp with time zone)", Reads("snowflake_max_id(now())")),
    ("snowflake_max_id(timestamp with time zone,text)", Reads("snowflake_max_id(now(), g)")),
    ("snowflake_min_id(timestamp with time zone)", Reads("snowflake_min_id(now())")),
    ("snowflake_min_id(timestamp with time zone,text)", Reads("snowflake_min_id(now(), g)")),
    ("snowflake_min_uuid(timestamp with time zone)", Reads("snowflake_min_uuid(now())")),
    ("snowflake_nextval()", Reads("snowflake_nextval()")),
    ("snowflake_nextval(text)", Reads("snowflake_nextval(g)")),
    ("snowflake_nextval_in_copy(internal)", INTERNAL),
    ("snowflake_nextval_in_copy(text,internal)", INTERNAL),
    ("snowflake_nextvals(integer)", Reads("snowflake_nextvals(100)")),
    ("snowflake_nextvals(integer,text)", Reads("snowflake_nextvals(100, g)")),
    ("snowflake_safe_id()", Reads("snowflake_safe_id()")),
    ("snowflake_safe_time()", Reads("snowflake_safe_time()")),
    ("snowflake_sequence(bigint)", Reads("snowflake_sequence(i)")),
    ("snowflake_sequence(bigint,text)", Reads("snowflake_sequence(i, g)")),
    ("snowflake_timestamp(bigint)", Reads("snowflake_timestamp(i)")),
    ("snowflake_timestamp(bigint,text)", Reads("snowflake_timestamp(i, g)")),
    ("snowflake_timestamp(text)", Reads("snowflake_timestamp(i::text)")),
    ("snowflake_timestamp(uuid)", Reads("snowflake_timestamp(u)")),
    ("snowflake_try_decode_text(text,text)", Reads("snowflake_try_decode_text(x, 'base58')")),
    (
        "snowflake_try_decode_text(text,text,text)",
        Reads("snowflake_try_decode_text('id_' || x, 'base58', 'id')"),
    ),
    ("snowflake_uuid()", Reads("snowflake_uuid()")),
    ("snowflake_uuid(text)", Reads("snowflake_uuid(g)")),
    ("snowflake_uuid_in_copy(internal)", INTERNAL),
    ("snowflake_uuid_in_copy(text,internal)", INTERNAL),
    ("snowflake_uuid_text()", Reads("snowflake_uuid_text()")),
    ("snowflake_uuid_text(text)", Reads("snowflake_uuid_text(g)")),
    ("snowflake_uuid_text_in_copy(internal)", INTERNAL),
    ("snowflake_uuid_text_in_copy(text,internal)", INTERNAL),
    ("snowflake_worker_id(bigint)", Reads("snowflake_worker_id(i)")),
    ("snowflake_worker_id(bigint,text)", Reads("snowflake_worker_id(i, g)")),
    ("snowflake_worker_id(text)", Reads("snowflake_worker_id(i::text)")),
    ("snowflake_worker_id(text,text)", Reads("snowflake_worker_id(i::text, g)")),
    ("snowflake_worker_id(uuid)", Reads("snowflake_worker_id(u)")),
    ("snowflake_worker_id(uuid,text)", Reads("snowflake_worker_id(u, g)")),
];
