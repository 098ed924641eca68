//! The verdict on a column that a series fills: each reason against it, and the steps.

use crate::series::ROW;
use snowflake_ids_core::Explain;
use snowflake_ids_core::column::series::{FillError, FillStep, FilledColumn, FilledTable};
use snowflake_ids_core::series::{Series, SeriesRow};

const ROLE: u32 = 10;
const GAPLESS: SeriesRow<'static> = SeriesRow { max_value: Some(i16::MAX as i64), ..ROW };

fn column(name: &str, base: &str) -> FilledColumn {
    FilledColumn {
        name: name.to_owned(),
        ident: name.to_owned(),
        table: "s.t".to_owned(),
        type_name: base.to_owned(),
        base: base.to_owned(),
        ..FilledColumn::default()
    }
}

/// The table of the caller, with column `n` to fill and key `k`.
fn table(base: &str, key: &str) -> FilledTable {
    let filled = FilledColumn { is_filled: true, ..column("n", base) };
    let key = FilledColumn { is_key: true, ..column("k", key) };
    FilledTable {
        name: "s.t".to_owned(),
        kind: 'r',
        is_owned: true,
        columns: vec![key, filled],
        ..FilledTable::default()
    }
}

fn judge(table: &FilledTable, row: &SeriesRow<'_>) -> Result<Vec<FillStep>, FillError> {
    table.judge(["n", "k"], (&Series::new(row).unwrap(), "r"), ROLE)
}

#[test]
fn only_ones_own_tables_have_columns_to_fill() {
    let check = |kind, is_owned| FilledTable { kind, is_owned, ..table("bigint", "bigint") }.check();
    for kind in ['r', 'p'] {
        assert_eq!(check(kind, true), Ok(()));
        assert_eq!(check(kind, false), Err(FillError::NotOwner("s.t".to_owned())));
    }
    assert_eq!(check('v', true), Err(FillError::NotATable("s.t".to_owned())));
}

#[test]
fn each_reason_against_a_column_is_told() {
    type Change = fn(&mut FilledTable);
    let cases: [(Change, &str); 11] = [
        (|table| table.columns.truncate(1), "column \"n\" of table s.t does not exist"),
        (|table| drop(table.columns.remove(0)), "column \"k\" of table s.t does not exist"),
        (|table| table.columns[1].is_generated = true, "column \"n\" of table s.t is generated"),
        (|table| table.columns[1].is_identity = true, "column \"n\" of table s.t is an identity column"),
        (|table| table.columns[0].is_generated = true, "key column \"k\" of table s.t is generated"),
        (|table| table.columns[1].has_default = true, "column \"n\" of table s.t has a default"),
        (|table| table.columns[1].is_key = true, "column \"n\" cannot be its own key"),
        (|table| table.columns[1].type_name = "date".to_owned(), "column \"n\" of table s.t is of type date"),
        (|table| table.columns[0].base = "text".to_owned(), "key column \"k\" of table s.t is of type text"),
        (
            |table| table.columns[1].is_partition_key = true,
            "column \"n\" of table s.t is part of its partition key",
        ),
        (|table| table.is_attached = true, "column \"n\" of table s.t is attached to a series already"),
    ];
    for (change, error) in cases {
        let mut changed = table("bigint", "bigint");
        change(&mut changed);
        assert_eq!(judge(&changed, &GAPLESS).map_err(|error| error.to_string()), Err(error.to_owned()));
    }
}

#[test]
fn a_column_and_its_key_have_fit_types() {
    let fits = |base: &str, max_value| {
        let row = SeriesRow { max_value: Some(max_value), ..GAPLESS };
        match judge(&table(base, "bigint"), &row) {
            Err(error) => assert_eq!(error.detail(), Some(format!("Its max_value is {max_value}."))),
            Ok(_) => return true,
        }
        false
    };
    for (base, most) in [("smallint", i16::MAX.into()), ("integer", i32::MAX.into())] {
        assert!(fits(base, most) && !fits(base, most + 1), "{base}");
    }
    for base in ["bigint", "text", "character varying", "character varying(9)"] {
        assert!(fits(base, i64::MAX), "{base}");
    }
    for (key_type, fit) in [
        ("bigint", &["bigint", "integer", "smallint"][..]),
        ("text", &["text", "character varying"]),
        ("uuid", &["uuid"]),
    ] {
        let row = SeriesRow { key_type, ..GAPLESS };
        for base in ["bigint", "integer", "smallint", "text", "character varying", "uuid", "date"] {
            assert_eq!(judge(&table("bigint", base), &row).is_ok(), fit.contains(&base), "{key_type} {base}");
        }
    }
}

#[test]
fn the_numbers_of_a_series_begin_above_those_in_the_tables() {
    let member = |oid, owner| (oid, format!("s.t{oid}"), owner, "bob".to_owned());
    let steps = |base, row: &SeriesRow<'_>| {
        let members = vec![member(1, ROLE), member(2, 11)];
        judge(&FilledTable { members, ..table(base, "bigint") }, row).unwrap()
    };
    let of_others = FillError::HasNumbers { table: "s.t2".to_owned(), owner: "bob".to_owned() };
    let counted = |follows| {
        let look = FillStep::Look(vec![(2, of_others.clone())]);
        [FillStep::RaiseAbove(1), look, FillStep::Fill { follows }].to_vec()
    };
    let above = |oid| (oid, FillError::NotAbove { series: "r".to_owned(), table: format!("s.t{oid}") });
    let told = [FillStep::Look(vec![above(1), above(2)]), FillStep::Fill { follows: false }].to_vec();
    let monotonic = SeriesRow { kind: "monotonic", step: Some(1), max_step: Some(1), ..GAPLESS };
    let monotonic = SeriesRow { sections: Some(1), ..monotonic };
    let dated = SeriesRow { reset: Some("year"), ..GAPLESS };
    for (base, row, expected) in [
        ("bigint", &GAPLESS, counted(true)),
        ("integer", &GAPLESS, counted(true)),
        ("smallint", &monotonic, counted(false)),
        ("text", &GAPLESS, told.clone()),
        ("bigint", &dated, told),
    ] {
        assert_eq!(steps(base, row), expected, "{base} {row:?}");
    }
}
