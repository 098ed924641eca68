//! The plan of a schema: what it says of each column.

use super::{CHILD, OTHER, SEQUENCE, TABLE, column, reference, sequence, serial, table, user, with_default};
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::facts::{
    Base, Binding, Column, Facts, IdentityKind, Reference, Sequence, User, UserTable,
};
use snowflake_ids_core::column::plan::{Found, Tags, plan};
use snowflake_ids_core::column::verdict::Action;

type Row = (Found, Option<Action>, Option<String>);

fn rows_of(
    columns: &[Column],
    sequences: Vec<Sequence>,
    references: Vec<Reference>,
    kind: IdKind,
) -> Vec<Row> {
    let facts = Facts::new(columns.to_vec(), &[(CHILD, TABLE)], sequences, references);
    let rows = plan(&facts, kind, Tags { count: 8, most: 9 });
    rows.into_iter().map(|row| (row.found, row.action, row.reason)).collect()
}

/// Returns the row of one column.
fn row(column: Column, sequence: Sequence, kind: IdKind) -> Row {
    rows_of(&[column], vec![sequence], Vec::new(), kind).remove(0)
}

fn in_table(change: impl FnOnce(&mut UserTable)) -> Column {
    let mut column = serial();
    change(&mut column.table);
    column
}

fn skipped(found: Found, reason: &str) -> Row {
    (found, None, Some(reason.to_owned()))
}

fn bound(tag: Option<&str>) -> Sequence {
    Sequence { bound: Some(Binding { tag: tag.map(str::to_owned), generator: None }), ..sequence() }
}

#[test]
fn only_candidates_in_the_schema_are_planned() {
    let rows = |column: Column| rows_of(&[column], vec![sequence()], Vec::new(), IdKind::Snowflake);
    assert_eq!(rows(serial()), [(Found::Serial, Some(Action::Attach), None)]);
    assert_eq!(rows(Column { is_candidate: false, ..serial() }), []);
    assert_eq!(rows(in_table(|table| table.is_planned = false)), []);
}

#[test]
fn a_skipped_column_has_a_reason() {
    use Found::{Attached, Default, Identity, None, Serial};
    let identity = Column {
        identity: Some(IdentityKind::Always),
        identity_sequence: Some(SEQUENCE),
        owned: vec![SEQUENCE],
        ..column(TABLE)
    };
    let down = Sequence { increment: -1, ..sequence() };
    let by_name = |what| format!("{what}: attach it by name if it is to take ids");
    for (column, sequence, found, reason) in [
        (
            in_table(|table| table.extension = Some("e".to_owned())),
            sequence(),
            Serial,
            "table of extension \"e\"",
        ),
        (in_table(|table| table.persistence = 't'), sequence(), Serial, "temporary table"),
        (with_default("snowflake_nextval()"), sequence(), Attached, "takes snowflake ids"),
        (serial(), bound(Some("t")), Attached, "takes segment ids of sequence \"s.q\""),
        (column(TABLE), sequence(), None, &by_name("no default")),
        (with_default("5"), sequence(), Default, &by_name("default of no sequence")),
        (
            Column { base: Base::Uuid, ..with_default("gen_random_uuid()") },
            sequence(),
            Default,
            "uuid: set DEFAULT snowflake_uuid() by hand if its ids are to grow with time",
        ),
        (
            Column { base: Base::Uuid, ..column(TABLE) },
            sequence(),
            None,
            "column \"id\" of relation \"s.t10\" must be bigint",
        ),
        (
            Column { base: Base::Integer, ..serial() },
            sequence(),
            Serial,
            "column \"id\" of relation \"s.t10\" must be bigint: widen s.t10.id, or take kind segment",
        ),
        (
            identity,
            down,
            Identity,
            "cannot bind sequence \"s.q\", which counts down, and attach would drop it",
        ),
    ] {
        assert_eq!(row(column, sequence, IdKind::Snowflake), skipped(found, reason));
    }
    let generated = Column { base: Base::Integer, is_generated: true, ..serial() };
    let reason = "column \"id\" of relation \"s.t10\" is a generated column";
    assert_eq!(row(generated, sequence(), IdKind::Segment), skipped(Serial, reason));
}

#[test]
fn an_action_has_remarks() {
    let remarks = |column: Column, sequence: Sequence, kind| {
        let (_, action, remarks) = row(column, sequence, kind);
        (action, remarks.unwrap_or_default())
    };
    let (attach, bind) = (Some(Action::Attach), Some(Action::Bind(SEQUENCE)));
    let integer = Column { base: Base::Integer, ..serial() };
    assert_eq!(remarks(integer, sequence(), IdKind::Segment), (attach, "ids end at 2147483647".to_owned()));
    let users =
        (OTHER..).map(|oid| User { is_planned: oid == OTHER, ident: "\"Id\"".to_owned(), ..user(oid) });
    let users = [user(TABLE)].into_iter().chain(users.take(5)).collect();
    let shared = Sequence { users, named_by: Some("view v".to_owned()), ..sequence() };
    let all = "ids also go to s.t12.\"Id\", s.t13.\"Id\", s.t14.\"Id\", view v; COPY must list the column";
    assert_eq!(remarks(serial(), shared, IdKind::Snowflake), (bind, all.to_owned()));
}

#[test]
fn columns_of_a_sequence_are_planned_together() {
    let both = || [serial(), Column { table: table(OTHER), owned: Vec::new(), ..serial() }];
    let shared = |other| {
        let users = [user(TABLE), other].map(|user| User { is_planned: true, ..user });
        Sequence { users: users.to_vec(), ..sequence() }
    };
    let serves = "sequence \"s.q\" serves 2 columns; COPY must list the column".to_owned();
    let rows = rows_of(&both(), vec![shared(user(OTHER))], Vec::new(), IdKind::Segment);
    let bind = Some(Action::Bind(SEQUENCE));
    // There is room for their one tag.
    assert_eq!(rows, [(Found::Serial, bind, Some(serves.clone())), (Found::Default, bind, Some(serves))]);
    let calculating = User { expression: None, attribute: "n".to_owned(), ..user(OTHER) };
    let error = "default of column \"n\" of relation \"s.t11\" is not a plain nextval() of a sequence";
    let rows = rows_of(&both(), vec![shared(calculating)], Vec::new(), IdKind::Segment);
    assert_eq!(rows, [skipped(Found::Serial, error), skipped(Found::Default, error)]);
    let narrow = Reference { to: OTHER, ..reference(Base::Integer) };
    let rows = |kind| rows_of(&both(), vec![shared(user(OTHER))], vec![narrow.clone()], kind);
    let error = "column \"ref\" of relation \"s.r\" cannot hold ids of the column that it references";
    assert_eq!(rows(IdKind::Snowflake), [skipped(Found::Serial, error), skipped(Found::Default, error)]);
    assert!(rows(IdKind::Segment).iter().all(|row| row.1 == bind));
    // A partition does not count as a column of its own.
    let child = Column { table: table(CHILD), owned: Vec::new(), ..serial() };
    let users = vec![user(TABLE), user(CHILD)];
    let rows =
        rows_of(&[serial(), child], vec![Sequence { users, ..sequence() }], Vec::new(), IdKind::Snowflake);
    assert_eq!(rows[0], (Found::Serial, Some(Action::Attach), None));
}

#[test]
fn each_new_tag_counts() {
    let own = |oid| {
        let written = Some(format!("nextval('s.q{oid}'::regclass)"));
        Column { table: table(oid), sequence: Some(oid), owned: vec![oid], expression: written, ..serial() }
    };
    let named = |oid| Sequence { oid, name: format!("s.q{oid}"), users: vec![user(oid)], ..sequence() };
    let borrowing = Column { table: table(OTHER), owned: Vec::new(), ..serial() };
    let columns = [serial(), borrowing, own(31), own(32)];
    let shared = Sequence { users: vec![user(TABLE), user(OTHER)], ..sequence() };
    let rows = |kind| rows_of(&columns, vec![shared.clone(), named(31), named(32)], Vec::new(), kind);
    let beyond = |count| Some(format!("tag {count} is beyond snowflake_ids.max_tags (9)"));
    let last = |kind| rows(kind).split_off(2).into_iter().map(|row| row.2).collect::<Vec<_>>();
    assert_eq!(last(IdKind::Segment), [beyond(10), beyond(11)], "the first two columns take one tag");
    assert_eq!(last(IdKind::Snowflake), [None, None]);
}

#[test]
fn a_tag_of_others_is_not_taken() {
    let denied = in_table(|table| table.is_tag_denied = true);
    let both = Sequence { users: vec![user(TABLE), user(OTHER)], ..sequence() };
    let bound = Sequence { is_tag_denied: true, ..both.clone() };
    let attach = Action::Attach;
    for (column, sequence, expected) in [
        (&denied, sequence(), Err("s.t10")),
        (&denied, both.clone(), Ok(Action::Bind(SEQUENCE))),
        (&serial(), bound, Err("s.q")),
        (&serial(), Sequence { is_tag_denied: true, ..sequence() }, Ok(attach)),
    ] {
        let (_, action, reason) = row(column.clone(), sequence.clone(), IdKind::Segment);
        assert_eq!(
            action.ok_or(reason.unwrap_or_default()),
            expected.map_err(|tag| format!("permission denied for segment tag \"{tag}\""))
        );
        assert!(row(column.clone(), sequence, IdKind::Snowflake).1.is_some());
    }
}

#[test]
fn a_column_above_tables_without_its_ids_is_attached_again() {
    let below = |expression: &str, child: Column, kind| {
        let columns = [with_default(expression), child];
        rows_of(&columns, vec![sequence()], Vec::new(), kind).remove(0)
    };
    let again =
        (Found::Attached, Some(Action::Attach), Some("table \"s.t12\" does not take its ids yet".to_owned()));
    let of = |kind: &str| skipped(Found::Attached, &format!("takes {kind} ids"));
    let (snowflake, of_tag) = ("snowflake_nextval()", "segment_nextval('s.t10'::text)");
    let child = |expression: &str| Column { table: table(CHILD), ..with_default(expression) };
    for (own, child, kind, expected) in [
        (snowflake, column(CHILD), IdKind::Snowflake, again.clone()),
        (snowflake, child(of_tag), IdKind::Snowflake, again.clone()),
        (snowflake, child(snowflake), IdKind::Snowflake, of("snowflake")),
        (snowflake, column(CHILD), IdKind::Segment, of("snowflake")),
        ("snowflake_nextval('g'::text)", column(CHILD), IdKind::Snowflake, of("snowflake")),
        (of_tag, column(CHILD), IdKind::Segment, again),
        ("segment_nextval('t'::text)", column(CHILD), IdKind::Segment, of("segment")),
    ] {
        assert_eq!(below(own, child, kind), expected, "{own} {kind}");
    }
}
