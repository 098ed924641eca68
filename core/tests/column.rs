//! The verdict on a column, over combinations of all facts and wishes.

mod plan;

use snowflake_ids_core::column::bound::{Unbinding, changes_to_bind, resumed};
use snowflake_ids_core::column::change::{
    Altered, BoundSequence, Meaning, SequenceChange, Stored, Write, meaning, stored,
};
use snowflake_ids_core::column::default::{self, IdKind, is_nextval_of, own, quoted, tag_of};
use snowflake_ids_core::column::error::{ColumnError, Obstacle};
use snowflake_ids_core::column::facts::{
    Base, Binding, Column, Facts, IdentityKind, Reference, Sequence, TagLimit, User, UserTable,
};
use snowflake_ids_core::column::new_column::{Fate, NewColumn, NewIds};
use snowflake_ids_core::column::node::Numbers;
use snowflake_ids_core::column::notice::Notice;
use snowflake_ids_core::column::other_layout::{hint, preset_of};
use snowflake_ids_core::column::plan::{Attached, Found, Tags, attached, plan};
use snowflake_ids_core::column::steps::{self, Step, ValueSource};
use snowflake_ids_core::column::tag::{Course, KnownTag, LeftTag, Need, TagStep, named_after, provide};
use snowflake_ids_core::column::verdict::{
    Action, SequenceFate, Wish, check_others, ids_of, judge, judge_sequence, lasting_obstacle, most_of_users,
    new_limit, notices, obstacle,
};
use snowflake_ids_core::{Explain, Kind, Layout, Node, PRESETS, UnixMicros};

const TABLE: u32 = 10;
const OTHER: u32 = 11;
const CHILD: u32 = 12;
const SEQUENCE: u32 = 20;
const NEXTVAL: &str = "nextval('s.q'::regclass)";

fn table(oid: u32) -> UserTable {
    let name = format!("s.t{oid}");
    UserTable {
        oid,
        kind: 'r',
        persistence: 'p',
        is_owned: true,
        is_planned: true,
        tag: Some(name.clone()),
        name,
        ..UserTable::default()
    }
}

fn column(oid: u32) -> Column {
    let (attribute, ident) = ("id".to_owned(), "id".to_owned());
    Column { table: table(oid), number: 1, attribute, ident, is_candidate: true, ..Column::default() }
}

fn serial() -> Column {
    let expression = Some(NEXTVAL.to_owned());
    Column { has_default: true, expression, sequence: Some(SEQUENCE), owned: vec![SEQUENCE], ..column(TABLE) }
}

fn user(relation: u32) -> User {
    let expression = Some(NEXTVAL.to_owned());
    let table = format!("s.t{relation}");
    User {
        relation,
        table,
        attribute: "id".to_owned(),
        number: 1,
        has_default: true,
        expression,
        ..User::default()
    }
}

fn sequence() -> Sequence {
    let (name, tag) = ("s.q".to_owned(), Some("s.q".to_owned()));
    Sequence {
        oid: SEQUENCE,
        name,
        tag,
        is_owned: true,
        persistence: 'p',
        start: 1,
        increment: 1,
        users: vec![user(TABLE)],
        ..Sequence::default()
    }
}

fn raise(highest: i64, most: i64) -> Step {
    Step::RaiseTag { highest, most, course: Course::DENSE }
}

fn reference(base: Base) -> Reference {
    let (table, attribute) = ("s.r".to_owned(), "ref".to_owned());
    Reference {
        to: TABLE,
        to_number: 1,
        relation: 30,
        table,
        attribute,
        number: 2,
        base,
        ..Reference::default()
    }
}

fn facts(columns: Vec<Column>, sequence: Sequence, references: Vec<Reference>) -> Facts {
    Facts::new(columns, &[(CHILD, TABLE)], vec![sequence], references)
}

/// One choice for each fact and each part of the wish.
struct Case {
    column: Column,
    child: Option<Column>,
    sequence: Sequence,
    references: Vec<Reference>,
    wish: Wish,
}

/// Takes one of the choices, and leaves the number of the remaining choices.
fn choose<T: Clone>(number: &mut usize, choices: &[T]) -> T {
    let choice = choices[*number % choices.len()].clone();
    *number /= choices.len();
    choice
}

fn case(mut number: usize) -> Option<Case> {
    let number = &mut number;
    let wish = Wish { fate: choose(number, &SequenceFate::ALL), ..Wish::of(choose(number, &IdKind::ALL)) };
    let wish = Wish { tag: (wish.kind == IdKind::Segment).then(|| "t".to_owned()), ..wish };
    let mut column = match choose(number, &[0, 1, 2, 3, 4, 5, 6]) {
        0 => serial(),
        1 => Column { owned: Vec::new(), ..serial() },
        2 => Column { expression: Some(format!("({NEXTVAL} * 2)")), ..serial() },
        3 => Column {
            identity: Some(IdentityKind::Always),
            identity_sequence: Some(SEQUENCE),
            owned: vec![SEQUENCE],
            ..column(TABLE)
        },
        4 => Column { identity: Some(IdentityKind::ByDefault), ..column(TABLE) },
        5 => {
            Column { has_default: true, expression: Some("snowflake_nextval()".to_owned()), ..column(TABLE) }
        }
        _ => Column { references: Some("s.r".to_owned()), ..column(TABLE) },
    };
    column.base = choose(number, &[Base::Bigint, Base::Integer, Base::Smallint, Base::Uuid, Base::Other]);
    column.table.kind = choose(number, &['r', 'p', 'r', 'f', 'v']);
    column.table.is_owned = choose(number, &[true, true, true, false]);
    column.is_generated = choose(number, &[false, false, false, true]);
    column.is_sequence_lent = choose(number, &[false, false, false, true]);
    (column.table.is_distributed, column.table.node_group) =
        choose(number, &[(false, 0), (false, 0), (false, 0), (true, 0), (true, 1)]);
    let child = match choose(number, &[0, 1, 2, 3]) {
        0 => None,
        1 => Some(Column {
            table: UserTable { kind: 'f', ..table(CHILD) },
            owned: Vec::new(),
            ..column.clone()
        }),
        2 => Some(Column { table: UserTable { is_owned: false, ..table(CHILD) }, ..column.clone() }),
        _ => Some(self::column(CHILD)),
    };
    let mut sequence = match choose(number, &[0, 1, 2, 3, 4, 5]) {
        0 => sequence(),
        1 => Sequence { persistence: 'u', ..sequence() },
        2 => Sequence { persistence: 't', ..sequence() },
        3 => Sequence { increment: -1, ..sequence() },
        4 => Sequence { base: Base::Integer, is_owned: false, ..sequence() },
        _ => Sequence { cycles: true, ..sequence() },
    };
    let binding = |tag: Option<&str>| Some(Binding { tag: tag.map(str::to_owned), generator: None });
    sequence.bound = choose(number, &[None, binding(None), binding(Some("t")), binding(Some("u"))]);
    sequence.users.extend(match choose(number, &[0, 1, 2, 3]) {
        0 => None,
        1 => Some(user(OTHER)),
        2 => Some(User { base: Base::Integer, ..user(OTHER) }),
        _ => Some(User { expression: Some(format!("({NEXTVAL} % 10)")), ..user(OTHER) }),
    });
    sequence.users.sort_by_key(|user| user.base.maximum());
    let references =
        choose(number, &[Vec::new(), vec![reference(Base::Integer)], vec![reference(Base::Bigint)]]);
    (*number == 0).then_some(Case { column, child, sequence, references, wish })
}

/// Says why a column that the verdict accepts must not be accepted; empty if nothing speaks against it.
fn objections(case: &Case, action: Action) -> Vec<&'static str> {
    let Case { column, sequence, wish, child, .. } = case;
    let is_other_kind = column.own().is_none_or(|(kind, _)| kind != wish.kind);
    let is_snowflake = wish.kind == IdKind::Snowflake;
    let other = sequence.users.iter().find(|user| user.relation == OTHER);
    let mut against = vec![
        (!matches!(column.table.kind, 'r' | 'p'), "no table"),
        (
            !column.table.is_owned || child.as_ref().is_some_and(|child| !child.table.is_owned),
            "another's table",
        ),
        (column.table.node_group != 0, "a worker"),
        (is_snowflake && column.base != Base::Bigint, "a narrow column"),
        (!matches!(column.base, Base::Bigint | Base::Integer | Base::Smallint), "no number"),
        (column.is_generated, "generated"),
        (column.identity.is_some() && column.identity_sequence.is_none(), "the parent's identity"),
        (is_other_kind && column.references.is_some(), "a foreign key"),
        (column.sequence.is_some() && column.expression.as_deref() != Some(NEXTVAL), "calculates"),
        (
            is_other_kind && is_snowflake && case.references.iter().any(|key| key.base.is_narrow()),
            "narrow keys",
        ),
    ];
    let is_filled = column.expression.as_deref() == Some(NEXTVAL);
    match action {
        Action::Attach => against.push((
            is_filled
                && !column.table.is_distributed
                && (column.owned.is_empty() || sequence.bound.is_some() || other.is_some())
                || column.identity.is_some() && is_other_kind && other.is_some(),
            "leaves the sequence's other users",
        )),
        Action::Bind(_) => against.extend([
            (
                !is_filled || column.table.is_distributed || wish.fate != SequenceFate::Redirect,
                "no shared sequence",
            ),
            (!sequence.is_owned || column.is_sequence_lent, "another's sequence"),
            (sequence.persistence == 't' || sequence.increment < 0, "cannot be bound"),
            (sequence.bound.as_ref().is_some_and(|bound| bound.tag != wish.tag), "bound to other ids"),
            (is_snowflake && other.is_some_and(|user| user.base.is_narrow()), "a narrow user"),
            (child.as_ref().is_some_and(|child| !child.has_default), "a child without the default"),
        ]),
    }
    against.into_iter().filter(|(holds, _)| *holds).map(|(_, why)| why).collect()
}

#[test]
fn no_column_is_accepted_against_an_objection_and_each_refusal_has_a_hint() {
    let (mut accepted, mut bound, mut refused) = (0, 0, 0);
    for case in (0..).step_by(1_009).map_while(case) {
        let columns = [case.column.clone()].into_iter().chain(case.child.clone()).collect();
        let facts = facts(columns, case.sequence.clone(), case.references.clone());
        let column = facts.column(TABLE, "id").unwrap();
        match judge(&facts, column, &case.wish) {
            Ok(action) => {
                assert_eq!(objections(&case, action), Vec::<&str>::new(), "{column:?} {:?}", case.sequence);
                accepted += 1;
                bound += usize::from(action != Action::Attach);
                for notice in notices(&facts, column, case.wish.kind, action, Vec::new()) {
                    assert_eq!(notice.kind(), Kind::Notice);
                    assert!(notice.detail().is_some() || notice.hint().is_some(), "{notice}");
                }
            }
            Err(error) => {
                refused += 1;
                assert!(error.hint().is_some() && !error.to_string().is_empty(), "{error:?}");
                assert!(!matches!(error.kind(), Kind::Internal | Kind::Notice));
                // A refused column is refused for a reason: the action without it would meet an objection.
                let others = [Action::Attach, Action::Bind(SEQUENCE)];
                let child = case.child.as_ref().is_some_and(|child| {
                    child.expression != case.column.expression || child.identity.is_some()
                });
                assert!(
                    child || others.iter().all(|action| !objections(&case, *action).is_empty()),
                    "{error:?}"
                );
            }
        }
        // The plan promises what the verdict does.
        for row in plan(&facts, case.wish.kind, Tags { count: 0, most: 9 })
            .into_iter()
            .filter(|row| row.column.table.oid == TABLE)
        {
            assert!(row.action.is_some() || row.reason.is_some());
            if let Some(action) = row.action {
                assert_eq!(judge(&facts, row.column, &Wish::of(case.wish.kind)), Ok(action));
            }
        }
        // A sequence that is bound by itself has no obstacle, and no narrow user of snowflake ids.
        if judge_sequence(&case.sequence, false, case.wish.kind).is_ok() {
            assert!(
                case.sequence.is_owned && case.sequence.bound.is_none() && obstacle(&case.sequence).is_none()
            );
            let distributed = judge_sequence(&case.sequence, true, case.wish.kind);
            assert!(matches!(distributed, Err(ColumnError::OfDistributed(_))));
            assert!(case.wish.kind == IdKind::Segment || check_others(&case.sequence, &[], i64::MAX).is_ok());
        }
    }
    assert!(accepted > 1_000 && bound > 100 && refused > 1_000, "{accepted} {bound} {refused}");
}

#[test]
fn a_column_that_takes_ids_of_the_kind_is_attached_again_without_a_word() {
    let expression = Some("segment_id('s.t10'::text)".to_owned());
    let column = Column { has_default: true, expression, base: Base::Integer, ..column(TABLE) };
    let facts = facts(vec![column], sequence(), vec![reference(Base::Smallint)]);
    let column = facts.column(TABLE, "id").unwrap();
    let uses = || vec![Notice::Partitions { table: "s.t10".to_owned() }];
    assert_eq!(judge(&facts, column, &Wish::of(IdKind::Segment)), Ok(Action::Attach));
    assert!(notices(&facts, column, IdKind::Segment, Action::Attach, uses()).is_empty());
    assert_eq!(notices(&facts, column, IdKind::Snowflake, Action::Attach, uses()).len(), 2);
}

#[test]
fn other_users_of_a_bound_sequence_are_told() {
    let calculating = User { expression: None, ..user(13) };
    let users = vec![user(TABLE), user(CHILD), user(OTHER), calculating];
    let child = Column { table: table(CHILD), ..serial() };
    let facts = facts(vec![serial(), child], Sequence { users, ..sequence() }, Vec::new());
    let told = |action| notices(&facts, &facts.columns()[0], IdKind::Snowflake, action, Vec::new());
    let [attribute, sequence] = ["id", "s.q"].map(str::to_owned);
    let plain = Notice::OtherUser {
        attribute: attribute.clone(),
        table: "s.t11".to_owned(),
        sequence: sequence.clone(),
    };
    let expression = "an expression".to_owned();
    let calculates = Notice::CalculatingUser { attribute, table: "s.t13".to_owned(), sequence, expression };
    assert_eq!(told(Action::Bind(SEQUENCE)), [plain, calculates]);
    assert_eq!(told(Action::Attach), []);
}

#[test]
fn a_bound_sequence_is_shared_by_those_who_want_its_ids() {
    use IdKind::{Segment, Snowflake};
    let text = |text: Option<&str>| text.map(str::to_owned);
    for (kind, [tag, generator], [bound_tag, bound_generator], is_bound) in [
        (Snowflake, [None, None], [None, None], true),
        (Snowflake, [None, Some("g")], [None, Some("g")], true),
        (Snowflake, [None, Some("g")], [None, None], false),
        (Snowflake, [None, None], [None, Some("g")], false),
        (Snowflake, [None, None], [Some("t"), None], false),
        (Segment, [Some("t"), None], [Some("t"), None], true),
        (Segment, [Some("u"), None], [Some("t"), None], false),
        // Without a tag, any tag is wanted.
        (Segment, [None, None], [Some("t"), None], true),
        (Segment, [None, None], [None, None], false),
    ] {
        let wish = Wish { tag: text(tag), generator: text(generator), ..Wish::of(kind) };
        let bound = Binding { tag: text(bound_tag), generator: text(bound_generator) };
        let sequence = Sequence { bound: Some(bound.clone()), ..sequence() };
        let facts = facts(vec![serial()], sequence, Vec::new());
        let expected = if is_bound {
            Ok(Action::Bind(SEQUENCE))
        } else {
            Err(ColumnError::BoundToOthers { sequence: "s.q".to_owned(), bound })
        };
        assert_eq!(judge(&facts, &facts.columns()[0], &wish), expected, "{wish:?}");
    }
}

#[test]
fn a_foreign_key_is_attached_if_something_fills_it() {
    let judged = |column: Column| {
        let column = Column { references: Some("s.r".to_owned()), ..column };
        let facts = facts(vec![column], sequence(), Vec::new());
        judge(&facts, &facts.columns()[0], &Wish::of(IdKind::Snowflake))
    };
    let identity = Some(IdentityKind::Always);
    let identity = Column { identity, identity_sequence: Some(SEQUENCE), ..column(TABLE) };
    for filled in [serial(), with_default("5"), identity] {
        assert_eq!(judged(filled), Ok(Action::Attach));
    }
    assert!(matches!(judged(column(TABLE)), Err(ColumnError::ForeignKey { .. })));
}

#[test]
fn some_sequences_cannot_be_bound() {
    let name = "s.q".to_owned();
    let narrow = Obstacle::Narrow { sequence: name.clone(), type_name: String::new(), most: 32_767 };
    let down = Obstacle::CountsDown { sequence: name.clone(), increment: -1 };
    for (sequence, lasts, expected) in [
        (sequence(), false, None),
        (Sequence { persistence: 't', ..sequence() }, true, Some(Obstacle::Temporary(name.clone()))),
        (Sequence { increment: -1, ..sequence() }, true, Some(down)),
        (Sequence { persistence: 'u', ..sequence() }, false, Some(Obstacle::Unlogged(name.clone()))),
        (Sequence { base: Base::Smallint, ..sequence() }, false, Some(narrow)),
        (Sequence { cycles: true, ..sequence() }, false, Some(Obstacle::Cycles(name))),
    ] {
        assert_eq!(lasting_obstacle(&sequence), expected.clone().filter(|_| lasts));
        assert_eq!(judge_sequence(&sequence, false, IdKind::Segment).err(), expected.map(ColumnError::from));
    }
}

#[test]
fn new_columns_take_ids_that_fit_them() {
    let column = |base| NewColumn { base, sequence: SEQUENCE, ..NewColumn::default() };
    let down = Sequence { increment: -1, ..sequence() };
    let fit = Sequence { base: Base::Integer, cycles: true, persistence: 'u', ..sequence() };
    for (ids, base, sequence, fate) in [
        (NewIds::Snowflake, Base::Bigint, &down, Fate::Attached(IdKind::Snowflake)),
        (NewIds::Segment, Base::Smallint, &down, Fate::Attached(IdKind::Segment)),
        (NewIds::Bound, Base::Bigint, &fit, Fate::Bound),
    ] {
        assert_eq!(column(base).fate(ids, sequence), fate);
    }
    let kept = |ids, base| match column(base).fate(ids, &down) {
        Fate::Kept(notice) => notice,
        fate => panic!("{fate:?}"),
    };
    for ids in [NewIds::Snowflake, NewIds::Bound] {
        assert!(matches!(kept(ids, Base::Integer), Notice::StaysNarrow { .. }));
    }
    assert!(matches!(kept(NewIds::Bound, Base::Bigint), Notice::StaysUnbound { .. }));
    let [_, detail, hint] = column(Base::Bigint).failed(NewIds::Bound, "no", None, Some("Wait."));
    assert_eq!(detail, "snowflake_ids.new_columns is bound.");
    assert!(hint.starts_with("Wait. Or SET snowflake_ids.new_columns = off"));
}

#[test]
fn users_limit_the_numbers_of_their_sequence() {
    let calculating = User { base: Base::Smallint, expression: None, ..user(OTHER) };
    let sequence = Sequence {
        users: vec![calculating, User { base: Base::Integer, ..user(TABLE) }, user(CHILD)],
        ..sequence()
    };
    assert_eq!(most_of_users(&sequence), i64::from(i32::MAX));
    assert!(matches!(
        judge_sequence(&sequence, false, IdKind::Snowflake),
        Err(ColumnError::NarrowUser { .. })
    ));
    let notices = judge_sequence(&sequence, false, IdKind::Segment).unwrap();
    assert!(matches!(notices.as_slice(), [Notice::CalculatingUser { .. }]), "{notices:?}");
}

#[test]
fn the_limit_of_a_tag_follows_the_types_of_its_columns() {
    use Base::{Bigint, Integer, Smallint};
    let int = Integer.maximum();
    for (max_value, most, base, limit) in [
        (32_767, i64::MAX, Bigint, Some(i64::MAX)),
        (32_767, int, Bigint, Some(int)),
        (int, i64::MAX, Integer, None),
        (5_000, i64::MAX, Bigint, None),
        (i64::MAX, i64::MAX, Bigint, None),
        (i64::MAX, i64::MAX, Smallint, Some(32_767)),
        (5_000, i64::MAX, Smallint, None),
    ] {
        let tag = TagLimit { max_value, max_id: 0, may_be_moved: true, most };
        assert_eq!(new_limit(&tag, base), limit, "{tag:?} {base:?}");
    }
    let bound =
        Sequence { bound: Some(Binding { tag: Some("t".to_owned()), generator: None }), ..sequence() };
    let facts = facts(vec![serial()], bound, Vec::new());
    assert_eq!(ids_of(&facts, facts.column(TABLE, "id").unwrap()), [(IdKind::Segment, Some("t".to_owned()))]);
    assert_eq!(tag_of("segment_nextval('it''s'::text)").as_deref(), Some("it's"));
}

#[test]
fn defaults_are_recognised_as_postgres_prints_them() {
    for (expression, expected) in [
        ("snowflake_nextval()", Some((IdKind::Snowflake, "snowflake_nextval()"))),
        ("snowflake_id()", Some((IdKind::Snowflake, "snowflake_nextval()"))),
        ("snowflake_id('g')", Some((IdKind::Snowflake, "snowflake_nextval('g'::text)"))),
        ("segment_id('it''s'::text)", Some((IdKind::Segment, "segment_nextval('it''s'::text)"))),
        ("segment_nextval('a'::text) + segment_nextval('b'::text)", None),
        ("segment_nextval('a'::text, 'b'::text)", None),
        ("segment_nextval('a''b' || 'c'::text)", None),
        ("segment_nextval()", None),
        ("segment_nextval('a')", None),
        ("segment_nextval(a)", None),
        ("snowflake_nextval('''::text)", None),
        ("s.snowflake_nextval()", None),
        ("snowflake_nextval_text()", None),
    ] {
        assert_eq!(own(expression), expected.map(|(kind, own)| (kind, own.to_owned())), "{expression}");
    }
    for (kind, name, written) in [
        (IdKind::Snowflake, None, "snowflake_nextval()"),
        (IdKind::Snowflake, Some("it's"), "snowflake_nextval('it''s'::text)"),
        (IdKind::Segment, Some("it's"), "segment_nextval('it''s'::text)"),
    ] {
        assert_eq!(default::of(kind, name), written);
        assert_eq!(own(written), Some((kind, written.to_owned())));
        assert_eq!(tag_of(written).as_deref(), name.filter(|_| kind == IdKind::Segment));
    }
    assert_eq!([quoted("it's"), quoted("\\'")], ["'it''s'", "E'\\\\'''"]);
    assert!(is_nextval_of("nextval('it''s.q'::regclass)", "it's.q"));
    assert!(!is_nextval_of("nextval('s.q'::regclass) + 1", "s.q"));
}

#[test]
fn columns_go_with_the_topmost_table_that_leads() {
    let top = Column { table: table(OTHER), ..serial() };
    let inherits = [(CHILD, TABLE), (TABLE, OTHER)];
    let facts = Facts::new(vec![top, serial(), column(CHILD)], &inherits, vec![sequence()], Vec::new());
    let rows = plan(&facts, IdKind::Snowflake, Tags { count: 0, most: 1 });
    let [top, below @ ..] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((top.found, top.action.is_some()), (Found::Serial, true));
    for row in below {
        assert_eq!((row.action, row.reason.as_deref()), (None, Some("goes with table \"s.t11\"")));
    }
    let above = |inherits: &[(u32, u32)], leaders: &[u32]| {
        let lead = |oid| match oid {
            _ if leaders.contains(&oid) => serial(),
            13 => Column { is_candidate: false, ..serial() },
            _ => column(oid),
        };
        let columns = (TABLE..TABLE + 4).map(|oid| Column { table: table(oid), ..lead(oid) }).collect();
        let facts = Facts::new(columns, inherits, vec![sequence()], Vec::new());
        let bottom = facts.column(TABLE, "id").unwrap();
        assert_eq!(facts.members(bottom).len(), if inherits.contains(&(11, TABLE)) { 2 } else { 1 });
        facts.above(bottom).map(|top| top.table.oid)
    };
    let chain = [(TABLE, 11), (11, 12), (12, 13)];
    for (leaders, top) in [(&[11, 12, 13][..], Some(13)), (&[TABLE, 11], Some(11)), (&[TABLE], None)] {
        assert_eq!(above(&chain, leaders), top);
    }
    // Of several ways, the longest counts. Of two tables at the top, the older one leads.
    assert_eq!(above(&[(TABLE, 12), (TABLE, 11), (11, 12)], &[11, 12]), Some(12));
    assert_eq!(above(&[(TABLE, 12), (TABLE, 11)], &[11, 12]), Some(11));
    // Two sessions at the same time can make a ring.
    assert!(above(&[(TABLE, 11), (11, TABLE)], &[TABLE, 11]).is_some());
}

#[test]
fn a_schema_is_detached_by_its_topmost_columns_and_its_sequences() {
    let own =
        |oid| Column { has_default: true, expression: Some("snowflake_nextval()".to_owned()), ..column(oid) };
    let bound = Sequence { bound: Some(Binding { tag: None, generator: None }), ..sequence() };
    let borrowing = Column { table: table(OTHER), owned: Vec::new(), ..serial() };
    let lent = Column { table: table(13), sequence: Some(21), is_sequence_lent: true, ..borrowing.clone() };
    let of_others = Sequence { oid: 21, ..bound.clone() };
    let others = [14, 15, 16].map(own);
    let [mut of_extension, mut elsewhere, mut unfit] = others;
    of_extension.table.extension = Some("e".to_owned());
    elsewhere.table.is_planned = false;
    unfit.is_candidate = false;
    let columns = vec![own(TABLE), own(CHILD), borrowing, lent, of_extension, elsewhere, unfit, column(17)];
    let facts = Facts::new(columns, &[(CHILD, TABLE)], vec![bound, of_others], Vec::new());
    let all = vec![Attached::Column(TABLE, 1), Attached::Sequence(SEQUENCE)];
    assert_eq!([attached(&facts, None), attached(&facts, Some(IdKind::Snowflake))], [all.clone(), all]);
    assert_eq!(attached(&facts, Some(IdKind::Segment)), []);
}

#[test]
fn columns_that_refer_by_way_of_others_are_widened_together() {
    let chain = Reference {
        to: 30,
        to_number: 2,
        relation: 31,
        table: "s.far".to_owned(),
        ident: "id".to_owned(),
        base: Base::Smallint,
        ..Reference::default()
    };
    let back = Reference { to: 31, to_number: 0, relation: 30, number: 2, ..reference(Base::Integer) };
    let older = Reference { relation: 29, table: "s.old".to_owned(), to: 31, to_number: 0, ..chain.clone() };
    let first = Reference { ident: "ref".to_owned(), ..reference(Base::Bigint) };
    let facts =
        facts(vec![Column { base: Base::Integer, ..serial() }], sequence(), vec![first, chain, back, older]);
    assert_eq!(facts.to_widen(facts.column(TABLE, "id").unwrap()), "s.t10.id, s.old.id, s.far.id");
    let refers = |(relation, attribute): (u32, &str)| {
        let attribute = attribute.to_owned();
        Reference { relation, attribute, ..reference(Base::Bigint) }
    };
    let unordered = [(31, "a"), (30, "b"), (30, "a")].map(refers);
    let ordered = self::facts(Vec::new(), sequence(), unordered.to_vec());
    let ordered = ordered.references(TABLE, 1).iter().map(|found| (found.relation, found.attribute.as_str()));
    assert!(ordered.eq([(30, "a"), (30, "b"), (31, "a")]));
    let long = Column { ident: "ü".repeat(400), ..serial() };
    assert_eq!(facts.to_widen(&long), format!("s.t10.{}", "ü".repeat(294)));
}

/// The presets that issue ids at present recognise their own ids, or share their bits and epoch with an earlier preset.
#[test]
fn ids_of_another_system_name_its_preset() {
    const DAY: i64 = 86_400_000_000;
    let now = UnixMicros(1_795_910_400_000_000); // 2026-11-29
    let made = |name: &str, at| {
        let node = Node { datacenter: 0, worker_id: 0, rollback: 0 };
        let id = name.parse::<Layout>().unwrap().compose(UnixMicros(at), node, 0).ok()?;
        Some(i64::try_from(id).unwrap())
    };
    for (name, _) in PRESETS {
        let Some(id) = made(name, now.0 - 29 * DAY) else { continue };
        let same = if matches!(name, "leaf" | "bwmarrin") { "twitter" } else { name };
        assert_eq!(preset_of(id, now), Some(same), "{id}");
    }
    assert_eq!(preset_of(made("twitter", now.0 - 31 * DAY).unwrap(), now), None, "too old");
    assert_eq!(preset_of(made("twitter", now.0 + DAY).unwrap(), now), None, "in the future");
    assert_eq!([preset_of(7, now), preset_of(i64::MAX, now), preset_of(-1, now)], [None; 3]);
    let twitter = made("twitter", now.0 - DAY).unwrap();
    assert_eq!(
        hint("s.\"it's\"", "id", twitter, "snowflake_nextval()", now),
        "If the ids are of layout \"twitter\": SELECT snowflake_ids.generator_create('twitter_ids', 'twitter'); SELECT \
         snowflake_ids.attach('s.\"it''s\"', 'id', generator => 'twitter_ids'); Or attach with kind => 'segment'."
    );
    let other = |written| hint("t", "id", i64::MAX, written, now);
    assert!(other("snowflake_nextval()").contains("snowflake_ids.layout_change"));
    assert!(other("snowflake_nextval('web'::text)").contains("a generator of that layout"));
}

/// Returns the steps that attach a column with ids of tag `t`, or with snowflake ids.
fn steps_of(
    column: Column,
    sequence: Sequence,
    (kind, fate): (IdKind, SequenceFate),
    highest: i64,
) -> Result<Vec<Step>, ColumnError> {
    let wish = Wish { fate, ..Wish::of(kind) };
    let written = if kind == IdKind::Segment { OF_TAG } else { "snowflake_nextval()" };
    let facts = facts(vec![column], sequence, Vec::new());
    steps::attach(&facts, &facts.columns()[0], &wish, written, highest)
}

const OF_TAG: &str = "segment_nextval('t'::text)";

fn with_default(expression: &str) -> Column {
    Column { has_default: true, expression: Some(expression.to_owned()), ..column(TABLE) }
}

#[test]
fn a_column_is_attached_in_steps() {
    let sequence = || Sequence { max: 1_000, ..sequence() };
    let first = |keeps_sequences| {
        [Step::Unbind(7), Step::DropIdentities { keeps_sequences }, Step::SetDefault].to_vec()
    };
    for (fate, most, last) in [
        (SequenceFate::Redirect, 1_000, Some(Step::Bind)),
        (SequenceFate::Keep, i64::MAX, None),
        (SequenceFate::Drop, i64::MAX, Some(Step::DropSequences)),
    ] {
        let keeps = fate != SequenceFate::Drop;
        let raise = raise(7, most);
        let dense: Vec<_> = first(keeps).into_iter().chain([raise]).chain(last.clone()).collect();
        assert_eq!(steps_of(serial(), sequence(), (IdKind::Segment, fate), 7), Ok(dense));
        let take = [Step::TakeAbove(7)];
        let ordered: Vec<_> = take.into_iter().chain(first(keeps)).chain(last).collect();
        assert_eq!(steps_of(serial(), sequence(), (IdKind::Snowflake, fate), 7), Ok(ordered));
    }
    // A column that is attached again takes no id. A sequence that ends at its type's maximum is widened.
    let (wish, wide) = ((IdKind::Snowflake, SequenceFate::Keep), Sequence { max: i64::MAX, ..sequence() });
    assert_eq!(steps_of(with_default("snowflake_nextval()"), wide.clone(), wish, 7), Ok(first(true)));
    // Without a sequence, none is bound.
    let wish = (IdKind::Snowflake, SequenceFate::Redirect);
    assert_eq!(steps_of(with_default("snowflake_nextval()"), wide.clone(), wish, 7), Ok(first(true)));
    let narrow = Sequence { base: Base::Integer, max: i32::MAX.into(), ..sequence() };
    for sequence in [wide, narrow] {
        let steps = steps_of(serial(), sequence, (IdKind::Segment, SequenceFate::Redirect), 7).unwrap();
        assert!(steps.contains(&raise(7, i64::MAX)));
    }
}

#[test]
fn a_replaced_default_is_told() {
    let told = |expression: &str| {
        let wish = (IdKind::Segment, SequenceFate::Keep);
        steps_of(with_default(expression), sequence(), wish, 7).unwrap().swap_remove(0)
    };
    let notice = Notice::Replaced {
        expression: "5".to_owned(),
        attribute: "id".to_owned(),
        table: "s.t10".to_owned(),
    };
    assert_eq!(told("5"), Step::Tell(notice));
    assert!(
        matches!(told(NEXTVAL), Step::Tell(Notice::Replaced { .. })),
        "the column does not own the sequence"
    );
    let other = "segment_nextval('u'::text)";
    assert_eq!(told(other), Step::TellKept(other.to_owned()));
    for expression in [OF_TAG, "snowflake_nextval()"] {
        assert_eq!(told(expression), Step::Unbind(7));
    }
}

#[test]
fn a_full_column_gets_no_dense_ids() {
    let full = |base: Base| {
        let wish = (IdKind::Segment, SequenceFate::Keep);
        steps_of(Column { base, ..column(TABLE) }, sequence(), wish, base.maximum())
    };
    for base in [Base::Smallint, Base::Integer, Base::Bigint] {
        assert!(matches!(full(base), Err(ColumnError::NoRoom { highest, .. }) if highest == base.maximum()));
    }
}

#[test]
fn nodes_of_a_cluster_learn_of_a_tag_one_after_another() {
    let on_nodes = |expression: &str, highest| {
        let column = with_default(expression);
        let column = Column { table: UserTable { is_distributed: true, ..column.table.clone() }, ..column };
        steps_of(column, sequence(), (IdKind::Segment, SequenceFate::Keep), highest).unwrap()
    };
    let of_worker = 1 << 48;
    for (former, highest, above) in [
        ("5", 7, 7),
        ("5", of_worker - 1, of_worker - 1),
        ("5", of_worker, of_worker + (1 << 36)),
        ("snowflake_nextval()", of_worker, of_worker + (1 << 42)),
        ("5", i64::MAX - 1, i64::MAX),
        (OF_TAG, of_worker, of_worker),
    ] {
        let steps = on_nodes(former, highest);
        assert!(steps.contains(&raise(above, i64::MAX)), "{former} {highest}");
        assert!(steps.contains(&Step::CheckWorkers((former != OF_TAG).then_some(highest))));
        assert!(steps.contains(&Step::UnbindOnNode(None)));
    }
    let distributed = Column { table: UserTable { is_distributed: true, ..table(TABLE) }, ..column(TABLE) };
    let check = |column: &Column, known| steps::check_tag(column, known, Some("t"));
    assert!(matches!(check(&distributed, Some("u")), Err(ColumnError::OtherTag { .. })));
    assert_eq!([check(&distributed, Some("t")), check(&distributed, None)], [Ok(()), Ok(())]);
    assert_eq!(check(&column(TABLE), Some("u")), Ok(()));
}

#[test]
fn a_worker_attaches_a_column_in_steps() {
    let attach = |kind, fate, members: &[Column]| {
        steps::attach_on_node(&members.iter().collect::<Vec<_>>(), &Wish { fate, ..Wish::of(kind) })
    };
    let first = |keeps_sequences| {
        [Step::UnbindOnNode(None), Step::DropIdentities { keeps_sequences }, Step::SetDefault].to_vec()
    };
    for (kind, fate, keeps, last) in [
        (IdKind::Snowflake, SequenceFate::Redirect, true, vec![Step::Bind]),
        (IdKind::Snowflake, SequenceFate::Drop, false, vec![Step::DropSequences]),
        (IdKind::Segment, SequenceFate::Keep, true, vec![Step::Discard]),
        (IdKind::Segment, SequenceFate::Redirect, true, vec![Step::Discard, Step::Bind]),
    ] {
        let members = [serial(), column(CHILD)];
        assert_eq!(attach(kind, fate, &members), [first(keeps), last].concat());
    }
    assert_eq!(attach(IdKind::Snowflake, SequenceFate::Redirect, &[column(TABLE)]), first(true));
}

#[test]
fn a_shared_sequence_is_bound_once() {
    let first = |bound| steps::bind(&serial(), &Sequence { bound, ..sequence() }, 7).swap_remove(0);
    let binding = |tag: Option<&str>| Some(Binding { tag: tag.map(str::to_owned), generator: None });
    assert_eq!(first(None), Step::BindShared { highest: 7, most: i64::MAX });
    assert_eq!(first(binding(Some("t"))), raise(7, i64::MAX));
    assert_eq!(first(binding(None)), Step::TakeAbove(7));
}

#[test]
fn a_sequence_is_what_it_was_after_it_is_unbound() {
    let to_bind = |sequence: &Sequence| changes_to_bind(sequence).collect::<Vec<_>>();
    assert!(to_bind(&sequence()).is_empty());
    let former = Sequence { base: Base::Integer, cycles: true, persistence: 'u', ..sequence() };
    assert_eq!(to_bind(&former), ["AS bigint", "NO CYCLE", "SET LOGGED"]);
    let bound = Unbinding { base: Base::Integer, cycles: true, is_unlogged: true, ..odd() };
    assert_eq!(bound.changes_to_restore(7), (vec!["AS integer", "CYCLE", "SET UNLOGGED"], None));
    let (changes, told) = bound.changes_to_restore(1 << 31);
    assert_eq!(changes, ["CYCLE", "SET UNLOGGED"]);
    assert!(matches!(told, Some(Notice::StaysBigint { number, .. }) if number == 1 << 31));
    let small = Unbinding { base: Base::Smallint, ..odd() };
    assert_eq!(small.changes_to_restore(7), (vec!["AS smallint"], None));
    assert_eq!(odd().changes_to_restore(i64::MAX), (Vec::new(), None));
}

fn odd() -> Unbinding {
    Unbinding {
        name: "s.q".to_owned(),
        start: 1,
        increment: 2,
        max: 99,
        is_single: true,
        ..Unbinding::default()
    }
}

#[test]
fn an_unbound_sequence_goes_on_by_its_own_increment() {
    for (highest, number) in [(-5, 1), (0, 1), (1, 3), (2, 3), (96, 97), (98, 99)] {
        assert_eq!(odd().number_above(highest), Ok(number), "{highest}");
    }
    assert!(matches!(odd().number_above(99), Err(ColumnError::MaximumBelow { max: 99, highest: 99, .. })));
    let widest = Unbinding { max: i64::MAX, ..odd() };
    assert_eq!(widest.number_above(i64::MAX - 1), Ok(i64::MAX));
    assert!(widest.number_above(i64::MAX).is_err());
    // A block of an application may begin below the number.
    assert_eq!(Unbinding { is_single: false, ..odd() }.number_above(10), Ok(13));
    let wrong = Unbinding { increment: 0, ..odd() }.number_above(1);
    assert!(matches!(wrong, Err(ColumnError::Increment(_))), "{wrong:?}");
}

/// A worker's sequence counts in the range of the worker's group, so ids of other nodes do not move it.
#[test]
fn a_sequence_of_a_distributed_table_goes_on_in_its_nodes_range() {
    let (numbers, first) = (Numbers::of_group(1), 1 << 48);
    let options = |first: &str, last: &str| format!("MINVALUE {first} MAXVALUE {last} START WITH {first}");
    assert_eq!(numbers.options(), options("281474976710657", "562949953421313"), "as Citus gives them");
    assert_eq!(Numbers::of_group(0).options(), options("1", "281474976710657"));
    let on_node = |last_number, above| {
        let bound = Unbinding { start: first + 1, max: i64::MAX, last_number, ..odd() };
        bound.number_on_node(&numbers, above)
    };
    assert_eq!(on_node(None, None), Ok(first + 1));
    assert_eq!(on_node(Some(first + 1), Some(first + 4)), Ok(first + 5));
    assert_eq!(on_node(Some(numbers.last + 1), None), Ok(first + 1));
    assert_eq!(on_node(Some(numbers.last - 1), None), Ok(numbers.last + 1));
    let even = Unbinding { start: first + 2, max: i64::MAX, ..odd() };
    assert!(even.number_on_node(&numbers, Some(numbers.last)).is_err());
    assert!(matches!(on_node(None, Some(numbers.last + 1)), Err(ColumnError::EndsOnNode { .. })));
    let above = |base, highest, given| numbers.above(base, Some(highest), given).unwrap_or_default();
    assert_eq!(above(Base::Bigint, first + 7, Some(first + 7)), first + 7);
    assert_eq!(above(Base::Bigint, first + 7, None), first + 7 + (1 << 36));
    assert_eq!(above(Base::Bigint, numbers.last - 1, None), numbers.last);
    assert_eq!(above(Base::Integer, 7, None), 7);
}

#[test]
fn a_column_is_detached_to_its_former_source() {
    let own = |kind| (kind, OF_TAG.to_owned());
    let bigint = Column { type_name: "bigint".to_owned(), is_not_null: true, ..column(TABLE) };
    assert_eq!(steps::source(&bigint, None, true), (ValueSource::Identity, None));
    assert_eq!(steps::source(&bigint, None, false), (ValueSource::Sequence, None));
    assert_eq!(steps::source(&bigint, Some(ValueSource::None), true), (ValueSource::None, None));
    let domain = Column { type_name: "d".to_owned(), ..column(TABLE) };
    assert!(matches!(
        steps::source(&domain, None, true),
        (ValueSource::Sequence, Some(Notice::WasIdentity { .. }))
    ));
    let of_table = facts(vec![bigint.clone()], sequence(), Vec::new());
    let restore = |relation, identity| Step::RestoreIdentity(relation, identity, 7);
    let top = restore(TABLE, IdentityKind::ByDefault);
    for (source, restored) in [
        (ValueSource::None, vec![Step::DropDefault]),
        (ValueSource::Sequence, vec![Step::RestoreSequence(7)]),
        (ValueSource::Identity, vec![Step::DropDefault, top.clone(), Step::TellWithoutDefault]),
    ] {
        let kept = Step::TellKept(OF_TAG.to_owned());
        let detach = |kind, highest| steps::detach(&of_table, &bigint, own(kind), source, highest);
        let steps = [vec![Step::Unbind(7)], restored, vec![kept]].concat();
        assert_eq!(detach(IdKind::Segment, 7), Ok(steps));
        let told = detach(IdKind::Snowflake, 7).unwrap().swap_remove(1);
        assert_eq!(
            matches!(told, Step::Tell(Notice::Continues { highest: 7, .. })),
            source != ValueSource::None
        );
        let is_told = |highest| {
            let steps = detach(IdKind::Snowflake, highest).unwrap();
            steps.iter().any(|step| matches!(step, Step::Tell(_)))
        };
        assert_eq!([is_told(0), is_told(1)], [false, source != ValueSource::None], "without ids, none stay");
        assert_eq!(detach(IdKind::Segment, i64::MAX).is_err(), source != ValueSource::None);
    }
    let (always, identity_sequence) = (Some(IdentityKind::Always), Some(SEQUENCE));
    let identity = Column { identity: always, identity_sequence, ..bigint.clone() };
    let shares = Column { identity_sequence: None, ..identity.clone() };
    assert_eq!([of_table.identity(&identity), of_table.identity(&shares)], [always, None]);
    // A child that was an identity is one again before its parent. On a cluster, only the table itself is restored.
    let former = Sequence { identity: Some(IdentityKind::Always), ..sequence() };
    let child = Column { table: table(CHILD), owned: vec![SEQUENCE], ..bigint.clone() };
    let restored = |is_distributed, is_not_null| {
        let table = UserTable { is_distributed, ..table(TABLE) };
        let columns = vec![Column { table, ..bigint.clone() }, Column { is_not_null, ..child.clone() }];
        let facts = facts(columns, former.clone(), Vec::new());
        let steps =
            steps::detach(&facts, &facts.columns()[0], own(IdKind::Segment), ValueSource::Identity, 7)?;
        Ok(steps.into_iter().filter(|step| matches!(step, Step::RestoreIdentity(..))).collect::<Vec<_>>())
    };
    assert_eq!(restored(true, false), Ok(vec![top.clone()]));
    let distributed = UserTable { is_distributed: true, ..table(TABLE) };
    let distributed = facts(vec![Column { table: distributed, ..bigint.clone() }], sequence(), Vec::new());
    let steps = steps::detach(
        &distributed,
        &distributed.columns()[0],
        own(IdKind::Snowflake),
        ValueSource::Sequence,
        7,
    );
    let on_coordinator = [Step::UnbindOnNode(Some(7)), Step::RestoreSequence(7)];
    assert_eq!(steps.unwrap()[..2], on_coordinator);
    assert_eq!(restored(false, true), Ok(vec![restore(CHILD, IdentityKind::Always), top]));
    assert!(matches!(restored(false, false), Err(ColumnError::MayBeNull { table, .. }) if table == "s.t12"));
    let (left, end) = (Sequence { start: 5, max: i64::MAX, ..sequence() }, (i64::MAX, true));
    let resume = |stored| resumed(&left, end, stored);
    assert_eq!([None, Some(4), Some(5)].map(resume), [Some((5, false)), Some((5, false)), Some((5, true))]);
    assert_eq!([resume(Some(i64::MAX)), resumed(&left, (i64::MAX, false), None)], [None; 2]);
    let bound = Some(Binding { tag: None, generator: None });
    let others = [Sequence { increment: -1, ..sequence() }, Sequence { bound, ..sequence() }];
    assert_eq!(others.map(|other| resumed(&other, end, None)), [None; 2]);
    for (bound, named) in
        [(None, None), (Some(Binding { tag: None, generator: None }), Some("s.q".to_owned()))]
    {
        let facts = facts(vec![serial()], Sequence { bound, ..sequence() }, Vec::new());
        let error = steps::attached(&facts, &facts.columns()[0]).unwrap_err();
        assert!(matches!(error, ColumnError::NotAttached { sequence, .. } if sequence == named));
    }
}

#[test]
fn an_id_must_be_above_the_ids_of_the_column() {
    let taken = |next| steps::check_next(&column(TABLE), OF_TAG.to_owned(), next, 7, UnixMicros(0));
    assert!(matches!((taken(7), taken(8)), (Err(ColumnError::BelowHighest { .. }), Ok(()))));
}

#[test]
fn arguments_must_go_together() {
    let read = |kind, tag: Option<&str>, generator: Option<&str>, fate| {
        let error = Wish::read(kind, tag.map(str::to_owned), generator.map(str::to_owned), fate).err();
        error.map(|error| error.to_string())
    };
    for (kind, tag, generator, fate, error) in [
        (None, None, None, "keep", Some("kind must not be null")),
        (Some("uuid"), None, None, "keep", Some("unrecognized kind \"uuid\"")),
        (Some("segment"), None, None, "lose", Some("unrecognized value for sequence: \"lose\"")),
        (Some("snowflake"), Some("t"), None, "keep", Some("snowflake ids have no tag")),
        (Some("segment"), Some("t"), Some("g"), "keep", Some("ids of a segment tag have no generator")),
        (Some("segment"), Some("t"), None, "keep", None),
        (Some("snowflake"), None, Some("g"), "redirect", None),
    ] {
        assert_eq!(read(kind, tag, generator, fate).as_deref(), error);
    }
    assert!(matches!(ValueSource::read("none"), Ok(ValueSource::None)));
    for (given, shown) in [("some".to_owned(), "some".to_owned()), ("ü".repeat(129), "ü".repeat(128))] {
        assert_eq!(ValueSource::read(&given), Err(ColumnError::UnknownSource(shown)));
    }
}

#[test]
fn a_former_identity_takes_the_values_that_an_identity_takes() {
    use Write::{Insert, InsertOverridingSystemValue as System, InsertOverridingUserValue as User, Update};
    for is_default in [false, true] {
        for write in [Insert, System, User, Update] {
            let as_stock = if write == User { Stored::Default } else { Stored::Written };
            assert_eq!(stored(IdentityKind::ByDefault, write, is_default), Ok(as_stock));
            let found = stored(IdentityKind::Always, write, is_default);
            match write {
                Insert | Update if !is_default => {
                    let error = found.expect_err("refused").of("id");
                    assert_eq!(error.kind(), Kind::GeneratedAlways);
                    assert!(error.hint().is_some());
                    assert_eq!(error == ColumnError::GivenUpdate("id".to_owned()), write == Update);
                }
                _ => assert_eq!(found, Ok(as_stock)),
            }
        }
    }
    assert_eq!(
        [b'a', b'd', b' '].map(IdentityKind::of),
        [Some(IdentityKind::Always), Some(IdentityKind::ByDefault), None]
    );
}

#[test]
fn a_dropped_identity_gives_no_ids_and_an_added_one_goes_on() {
    let of = |altered, is_dropped| {
        let Meaning { drops, is_written, binds } = meaning(altered, is_dropped).expect("allowed");
        (drops, is_written, binds)
    };
    assert_eq!(of(Altered::Dropped, false), (true, false, false));
    assert_eq!(of(Altered::Added, false), (true, true, true));
    assert_eq!(of(Altered::Added, true), (false, true, false), "after DROP IDENTITY it is a new identity");
    assert_eq!(of(Altered::Set, false), (false, false, false));
    assert_eq!(meaning(Altered::Default, false), None);
    assert_eq!(of(Altered::InheritedDefault, false), (false, true, false), "as pg_dump --clean writes it");
    assert_eq!(of(Altered::Default, true), (false, true, false), "after DROP IDENTITY it is a plain column");
}

#[test]
fn a_bound_sequence_keeps_its_room_and_a_former_identity_keeps_its_sequence() {
    let (column, plain) = (Column { identity: Some(IdentityKind::ByDefault), ..column(TABLE) }, serial());
    let bound = |owner, is_former, is_segment| BoundSequence {
        name: "s.q",
        max: i64::MAX,
        owner,
        is_former,
        is_segment,
    };
    let checked = |change: SequenceChange, owner, is_former| {
        change.check(&bound(owner, is_former, false)).map_err(|error| {
            assert!(error.hint().is_some(), "{error}");
            (error.kind(), error.to_string())
        })
    };
    let narrow = SequenceChange { base: Some(Base::Integer), ..SequenceChange::default() };
    let given = SequenceChange { gives_away: true, ..SequenceChange::default() };
    let ends = |max| SequenceChange { max: Some(max), ..SequenceChange::default() };
    assert!(given.is_any() && !SequenceChange::default().is_any());
    let cannot_end = |most| Err((Kind::NotReady, format!("bound sequence \"s.q\" cannot end at {most}")));
    let narrowed = "column \"id\" of relation \"s.t10\" cannot be of type integer".to_owned();
    assert_eq!(checked(narrow, Some(&column), false), Err((Kind::NotReady, narrowed)));
    let of_domain = Column { base: Base::Integer, type_name: "d".to_owned(), ..column.clone() };
    for (base, name) in [(Base::Smallint, "smallint"), (Base::Integer, "d")] {
        let error = ColumnError::narrowed(&of_domain, base).to_string();
        assert_eq!(error, format!("column \"id\" of relation \"s.t10\" cannot be of type {name}"));
    }
    assert_eq!(checked(narrow, Some(&plain), false), cannot_end(i32::MAX));
    assert_eq!(checked(narrow, None, false), cannot_end(i32::MAX));
    let followed = SequenceChange { is_of_column: true, ..narrow };
    let of_tag = bound(Some(&column), false, true);
    assert_eq!((followed.check(&of_tag), followed.keeps_type(&of_tag)), (Ok(()), true));
    assert!(!narrow.keeps_type(&of_tag) && !followed.keeps_type(&bound(Some(&column), false, false)));
    assert_eq!(checked(ends(1_000), None, false), cannot_end(1_000));
    assert_eq!(checked(ends(i64::MAX), None, false), Ok(()));
    assert_eq!(checked(given, Some(&plain), false), Ok(()));
    let linked = "cannot change ownership of identity sequence".to_owned();
    assert_eq!(checked(given, Some(&plain), true), Err((Kind::Unsupported, linked)));
}

fn known() -> KnownTag {
    KnownTag { max_value: i64::MAX, increment: 1, is_made: true, most: i64::MAX, ..KnownTag::default() }
}

#[test]
fn tags_of_two_tables_have_two_names() {
    let quoted = |name: &[u8]| format!("<{}>", String::from_utf8_lossy(name)).into_bytes();
    for (schema, table, tag) in [
        ("s", "t", "s.t"),
        ("s", "\"t", "s.\"t"),
        ("a.b", "t", "<a.b>.t"),
        ("a", "b.t", "a.<b.t>"),
        ("a", "\"b\".t", "a.<\"b\".t>"),
        ("\"a", "b.t", "<\"a>.<b.t>"),
        ("a.b", "\"t", "<a.b>.<\"t>"),
    ] {
        assert_eq!(
            named_after(schema.as_bytes(), table.as_bytes(), quoted),
            tag.as_bytes(),
            "{schema} {table}"
        );
    }
}

#[test]
fn a_tag_gets_fit_for_a_column() {
    const INT: i64 = i32::MAX as i64;
    let course = Course { start: 1_003, increment: 10 };
    let need = Need { tag: "t", highest: 7, most: Some(INT), course, is_new: true };
    let create = |max_value| TagStep::Create { max_value, increment: 10, remainder: 3 };
    let given = |known: KnownTag, need: &Need<'_>| provide(Some(&known), need).unwrap();
    assert_eq!(provide(None, &need), Ok(vec![create(INT), TagStep::Raise(7)]));
    let above = |highest| provide(None, &Need { highest, ..need.clone() }).unwrap();
    assert_eq!((above(1), above(0)), (vec![create(INT), TagStep::Raise(1)], vec![create(INT)]));
    // A tag that was left when its table was dropped begins anew with a new table, and gets the limit of a column that is not new.
    assert_eq!(given(known(), &need), [TagStep::Drop, create(INT), TagStep::Raise(7)]);
    let old = Need { is_new: false, ..need.clone() };
    assert_eq!(given(known(), &old), [TagStep::Limit(INT), TagStep::Raise(7)]);
    // Others may need the ids of a tag that is used, or that a user has made or changed.
    for kept in [KnownTag { is_used: true, ..known() }, KnownTag { is_made: false, ..known() }] {
        let limit = i64::MAX;
        let error = ColumnError::TagExceeds { tag: "t".to_owned(), limit, most: INT, is_new: false };
        assert_eq!([&need, &old].map(|need| provide(Some(&kept), need)), [Err(error.clone()), Err(error)]);
        // A tag of this transaction may be gone when the user reads the hint.
        let hint =
            provide(Some(&KnownTag { is_new: true, ..kept.clone() }), &need).unwrap_err().hint().unwrap();
        assert!(!hint.contains("segment_alter"), "{hint}");
        let wide = Need { most: Some(i64::MAX), ..need.clone() };
        assert_eq!(given(kept, &wide), [TagStep::Raise(7)]);
    }
    // The limit of a narrower type follows, as far as all columns can hold the ids.
    let narrow = KnownTag { max_value: 32_767, is_used: true, ..known() };
    assert_eq!(given(narrow.clone(), &need), [TagStep::Limit(INT), TagStep::Raise(7)]);
    assert_eq!(given(KnownTag { most: 32_767, ..narrow.clone() }, &need), [TagStep::Raise(7)]);
    // A column without ids is above those of a tag that was made, but perhaps not above those of another tag.
    let empty = Need { highest: 0, most: Some(i64::MAX), is_new: false, ..need.clone() };
    assert_eq!(given(known(), &empty), []);
    for other in [KnownTag { is_made: false, ..known() }, KnownTag { max_id: -1, ..known() }] {
        assert_eq!(given(other, &empty), [TagStep::Raise(0)]);
    }
    assert_eq!(provide(None, &empty), Ok(vec![create(i64::MAX)]));
    // The limit of the tag itself counts when no column is attached.
    let restored = Need { most: None, ..need.clone() };
    assert_eq!(given(narrow, &restored), [TagStep::Raise(7)]);
    assert_eq!(provide(None, &restored), Ok(vec![TagStep::Raise(7)]));
    let high = Need { highest: INT, ..need.clone() };
    assert!(matches!(provide(None, &high), Err(ColumnError::TagFull { .. })));
    for full in [high.clone(), Need { is_new: false, ..high }] {
        assert!(matches!(provide(Some(&known()), &full), Err(ColumnError::TagExceeds { .. })));
    }
    let ends = KnownTag { max_value: 7, is_used: true, ..known() };
    assert!(matches!(provide(Some(&ends), &need), Err(ColumnError::TagEnds { limit: 7, .. })));
    let resets = KnownTag { reset: Some("day".to_owned()), is_used: true, ..known() };
    assert!(matches!(provide(Some(&resets), &need), Err(ColumnError::TagResets { .. })));
}

#[test]
fn a_new_tag_counts_as_the_columns_sequences() {
    let course = |increments: &[i64]| {
        let sequences = increments.iter().zip(SEQUENCE..);
        let sequences: Vec<_> =
            sequences.map(|(by, oid)| Sequence { oid, start: 5, increment: *by, ..sequence() }).collect();
        let owned = sequences.iter().map(|sequence| sequence.oid).collect();
        let facts = Facts::new(vec![Column { owned, ..serial() }], &[], sequences, Vec::new());
        Course::of(&facts, &facts.members(facts.column(TABLE, "id").unwrap()))
    };
    assert_eq!([course(&[10]), course(&[10, 10])], [Course { start: 5, increment: 10 }; 2]);
    for unfit in [&[][..], &[10, 1], &[-1], &[1 << 40]] {
        assert_eq!(course(unfit), Course::DENSE);
    }
    // The nodes of a cluster count in ranges of their own.
    for (is_distributed, course) in [(false, Course { start: 5, increment: 10 }), (true, Course::DENSE)] {
        let column = Column { table: UserTable { is_distributed, ..table(TABLE) }, ..serial() };
        let by_tens = Sequence { start: 5, increment: 10, max: i64::MAX, ..sequence() };
        let steps = steps_of(column, by_tens, (IdKind::Segment, SequenceFate::Keep), 7).unwrap();
        assert!(steps.contains(&Step::RaiseTag { highest: 7, most: i64::MAX, course }), "{steps:?}");
    }
    let counts = |increment| KnownTag { increment: 10, ..known() }.counts_as(increment);
    assert_eq!([counts(10), counts(1), counts(5), known().counts_as(1)], [true, false, false, false]);
    assert!(KnownTag { increment: 2, ..known() }.counts_as(2));
    assert!(!KnownTag { increment: 10, is_made: false, ..known() }.counts_as(10));
}

#[test]
fn only_a_tag_that_nobody_else_needs_goes_with_its_column() {
    let left = LeftTag { is_made: true, ..LeftTag::default() };
    assert!(left.goes());
    for kept in [
        LeftTag { is_made: false, ..left.clone() },
        LeftTag { is_restricted: true, ..left.clone() },
        LeftTag { is_used: true, ..left.clone() },
        LeftTag { is_elsewhere: true, ..left },
    ] {
        assert!(!kept.goes(), "{kept:?}");
    }
}

#[test]
fn a_copy_is_told_a_way() {
    let told = |column: &Column, bound: Binding, is_plain| {
        let sequence = Sequence { bound: Some(bound), ..sequence() };
        ColumnError::not_copied(column, &sequence, is_plain).hint().unwrap()
    };
    let of = |tag: Option<&str>, generator: Option<&str>| {
        let [tag, generator] = [tag, generator].map(|name| name.map(str::to_owned));
        Binding { tag, generator }
    };
    let shown = [(Some("t"), None), (None, Some("g")), (None, None)].map(|(tag, by)| of(tag, by).to_string());
    assert_eq!(shown, ["ids of segment tag \"t\"", "ids of generator \"g\"", "snowflake ids"]);
    let identity = Column { identity: Some(IdentityKind::ByDefault), ..column(TABLE) };
    for (bound, default, attach) in [
        (of(Some("t"), None), "segment_nextval('t'::text);", "'id', kind => 'segment', tag => 't');"),
        (of(None, Some("g")), "snowflake_nextval('g'::text);", "'id', generator => 'g');"),
        (of(None, None), "snowflake_nextval();", "'id');"),
    ] {
        assert!(
            told(&serial(), bound.clone(), true).ends_with(&format!("ALTER COLUMN id SET DEFAULT {default}"))
        );
        assert!(told(&identity, bound.clone(), true).ends_with(attach));
        assert!(told(&serial(), bound, false).contains("temporary table"));
    }
}
