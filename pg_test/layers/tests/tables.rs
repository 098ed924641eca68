//! Tests that code opens the extension's tables only by `Table::open` (`src/pg/catalog.rs`), as declared in
//! `src/store/tables.rs`. A role that may create objects could put another table under the same name, even in the middle of a
//! statement.

use anyhow::{Result, ensure};
use snowflake_ids_layers::tables::{files, late_keepers, names};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Beginnings of the names of functions that find a relation by name, open a relation, or read a row without checking its types.
const BY_HAND: [&str; 20] = [
    "get_namespace_oid",
    "get_relname_relid",
    "RangeVarGetRelid",
    "makeRangeVar",
    "regclassin",
    "to_regclass",
    "open_with_name",
    "with_lock",
    "table_open",
    "try_table_open",
    "relation_open",
    "try_relation_open",
    "RelationIdGetRelation",
    "index_open",
    "table_beginscan",
    "heap_beginscan",
    "index_beginscan",
    "systable_beginscan",
    "heap_getattr",
    "heap_deform_tuple",
];

/// The files that may use such functions, with the functions' names and the reason.
const MAY: [(&str, &[&str], &str); 9] = [
    (
        "pg/catalog.rs",
        &["get_namespace_oid", "get_relname_relid", "try_relation_open", "table_open"],
        "Table::find and Table::open, which check that a table is the extension's, Citus's catalogs in pg_catalog, and pg_type, \
         by its fixed oid",
    ),
    ("pg/rows.rs", &["heap_getattr"], "rows of what Table::open has opened, by the types that it compared"),
    ("pg/database.rs", &["table_open"], "pg_database, by its fixed oid"),
    ("pg/tuple.rs", &["systable_beginscan"], "scans of what the others here have opened"),
    (
        "pg/relation.rs",
        &[
            "RangeVarGetRelidExtended",
            "get_relname_relid",
            "try_relation_open",
            "table_open",
            "heap_getattr_raw",
        ],
        "sequences of users, by their oids; one that was made in the same call; the key table of a distributed series, by its owner; \
         pg_inherits and pg_attrdef, by their fixed oids",
    ),
    (
        "pg/copying.rs",
        &["RangeVarGetRelidExtended"],
        "the table of a user's COPY, found and locked as the server finds and locks it",
    ),
    ("pg/relcache.rs", &["RelationIdGetRelation"], "relations of users, by their oids"),
    (
        "pg/identity.rs",
        &["RangeVarGetRelidExtended", "makeRangeVar"],
        "the sequence of a user's ALTER SEQUENCE and the tables of LIKE, found and locked as the server does; a sequence for \
         AlterSequence, whose oid is compared afterwards, and an error undoes the change of another sequence",
    ),
    (
        "entry/series.rs",
        &["heap_getattr"],
        "the row that a trigger is called for, by the types of its own table",
    ),
];

/// The only file that may declare tables.
const TABLES: &str = "store/tables.rs";

fn sources() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../src")
}

/// Returns the forbidden functions that a file uses, one line for each.
fn opened_by_hand(file: &str, rust: &str) -> Result<Vec<String>> {
    let may: Vec<&str> =
        MAY.iter().filter(|(of, _, _)| *of == file).flat_map(|(_, names, _)| *names).copied().collect();
    let used = names(rust, &BY_HAND)?;
    Ok(used
        .iter()
        .filter(|name| !may.contains(&name.as_str()))
        .map(|name| format!("{file}: {name}"))
        .collect())
}

/// Whether a file declares a table that only [`TABLES`] may declare.
fn declares_table(file: &str, rust: &str) -> bool {
    file != TABLES && rust.contains("Table::new(c\"")
}

#[test]
fn no_reader_bypasses_the_one_way_to_open_a_table() -> Result<()> {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for (file, rust) in files(&sources(), &["rs"])? {
        wrong.extend(opened_by_hand(&file, &rust)?);
        wrong.extend(declares_table(&file, &rust).then(|| format!("{file} declares a table")));
        used.extend(names(&rust, &BY_HAND)?.into_iter().map(|name| (file.clone(), name)));
    }
    ensure!(wrong.is_empty(), "tables that Table::open does not open:\n{}", wrong.join("\n"));
    for (file, names, _) in MAY {
        for name in names {
            ensure!(
                used.contains(&(file.to_owned(), (*name).to_owned())),
                "{file} may use {name}, and does not"
            );
        }
    }
    Ok(())
}

#[test]
fn a_bypass_is_found() -> Result<()> {
    let bypass = "fn read() { unsafe { let t = pg_sys::try_table_open(found(), 1); } }";
    assert_eq!(opened_by_hand("segment/known.rs", bypass)?, ["segment/known.rs: try_table_open"]);
    assert_eq!(opened_by_hand("pg/database.rs", bypass)?, ["pg/database.rs: try_table_open"]);
    assert_eq!(opened_by_hand("pg/database.rs", "fn read() { table_open(oid) }")?, [""; 0]);
    let by_name = "fn read() { PgRelation::open_with_name_and_share_lock(\"snowflake_ids.segment\") }";
    assert_eq!(opened_by_hand("audit.rs", by_name)?, ["audit.rs: open_with_name_and_share_lock"]);
    let table = "static T: Table = Table::new(c\"planted\", &[]);";
    ensure!(declares_table("audit.rs", table) && !declares_table(TABLES, table));
    Ok(())
}

#[test]
fn functions_that_keep_the_extension_keep_it_first() -> Result<()> {
    let scripts = files(&sources().join("sql"), &["sql", "rs"])?;
    let late: Vec<String> = scripts.iter().flat_map(|(_, sql)| late_keepers(sql)).collect();
    ensure!(late.is_empty(), "what they name may be planted:\n{}", late.join("\n"));
    Ok(())
}

#[test]
fn a_late_keeper_is_found() {
    let function = |head: &str, body: &str| {
        format!("CREATE FUNCTION snowflake_ids.f() {head} AS $$\n{body}\nEND\n$$;\n")
    };
    let definer = "RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp";
    let keep = "BEGIN\n    PERFORM pg_catalog.snowflake_extension_keep();";
    let found = |head: &str, body: &str| late_keepers(&function(head, body));
    assert_eq!(found(definer, keep), [""; 0]);
    assert_eq!(found(definer, &format!("DECLARE\n    n integer;\n{keep}")), [""; 0]);
    assert_eq!(found("RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER", "BEGIN"), [""; 0]);
    assert_eq!(found("RETURNS void LANGUAGE plpgsql", "BEGIN"), [""; 0]);
    let late = ["FUNCTION snowflake_ids.f"];
    assert_eq!(found(definer, "BEGIN\n    PERFORM snowflake_ids.g();"), late);
    let declares = format!("DECLARE\n    n snowflake_ids.segment;\n{keep}");
    assert_eq!(found(definer, &declares), late);
    assert_eq!(found("RETURNS void LANGUAGE plpgsql", &declares), late);
}
