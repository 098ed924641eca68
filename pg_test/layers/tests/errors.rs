//! Test that `docs/reference/errors.md` lists the same errors as the sources. The sources have three kinds of errors: types with a
//! message, a kind, a detail and a hint for each variant; calls of `new_report`; and errors that SQL raises.
//! `SNOWFLAKE_IDS_WRITE=1` writes the list again.

#[path = "errors/reports.rs"]
mod reports;
#[path = "errors/statements.rs"]
mod statements;
#[path = "errors/variants.rs"]
mod variants;

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "docs/reference/errors.md";

const HEAD: &str = "# Errors

The errors that the sources name, in the order of their messages. A word in italics, or `...`, stands for a value. A message
whose words are made up while it is raised is not here. A message that begins with *it* or *its* is about a registry, which the text before it
names. What to do about those that users meet, and which SQLSTATE counts when, is in
[errors](../errors.md).

| message | SQLSTATE | DETAIL | HINT |
| --- | --- | --- | --- |
";

/// SQLSTATEs by the names that SQL and pgrx use, from appendix A of the Postgres documentation.
const CODES: [(&str, &str); 36] = [
    ("active_sql_transaction", "25001"),
    ("character_not_in_repertoire", "22021"),
    ("configuration_limit_exceeded", "53400"),
    ("connection_failure", "08006"),
    ("data_corrupted", "XX001"),
    ("datatype_mismatch", "42804"),
    ("invalid_text_representation", "22P02"),
    ("dependent_objects_still_exist", "2BP01"),
    ("disk_full", "53100"),
    ("duplicate_object", "42710"),
    ("e_r_i_e_trigger_protocol_violated", "39P01"),
    ("fdw_error", "HV000"),
    ("feature_not_supported", "0A000"),
    ("insufficient_privilege", "42501"),
    ("insufficient_resources", "53000"),
    ("internal_error", "XX000"),
    ("invalid_parameter_value", "22023"),
    ("io_error", "58030"),
    ("lock_not_available", "55P03"),
    ("null_value_not_allowed", "22004"),
    ("numeric_value_out_of_range", "22003"),
    ("object_in_use", "55006"),
    ("object_not_in_prerequisite_state", "55000"),
    ("out_of_memory", "53200"),
    ("read_only_sql_transaction", "25006"),
    ("sequence_generator_limit_exceeded", "2200H"),
    ("serialization_failure", "40001"),
    ("sqlclient_unable_to_establish_sqlconnection", "08001"),
    ("string_data_right_truncation", "22001"),
    ("successful_completion", "00000"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_object", "42704"),
    ("undefined_table", "42P01"),
    ("untranslatable_character", "22P05"),
    ("wrong_object_type", "42809"),
];

/// An entry of the list.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    message: String,
    /// The SQLSTATE, or all SQLSTATEs with which the message is raised.
    sqlstate: String,
    detail: String,
    hint: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the SQLSTATE for a name such as `ERRCODE_DISK_FULL` or `disk_full`. An SQLSTATE is returned unchanged.
fn sqlstate(name: &str) -> Result<String> {
    let name = name.strip_prefix("ERRCODE_").unwrap_or(name).to_lowercase();
    let known = CODES.iter().find(|(known, state)| *known == name || state.to_lowercase() == name);
    known.map(|(_, state)| (*state).to_owned()).with_context(|| format!("CODES has no {name}"))
}

/// Returns the texts of the files with this ending in and below a folder, in the order of the paths.
fn texts(folder: &Path, ending: &str) -> Result<Vec<String>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(texts(&path, ending)?);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(fs::read_to_string(path)?);
        }
    }
    Ok(found)
}

/// Replaces each argument of a Rust format string by its name in italics.
fn shown(format: &str) -> String {
    let mut text = String::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' | '}' if letters.peek() == Some(&letter) => {
                letters.next();
                text.push(letter);
            }
            '{' => {
                let argument: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                text.push_str(&placeholder(argument.split(':').next().unwrap_or_default()));
            }
            _ => text.push(letter),
        }
    }
    text
}

/// Returns the name of an argument in italics, `...` if the argument is an expression.
fn placeholder(argument: &str) -> String {
    let name = argument.rsplit('.').next().unwrap_or_default().trim_matches('"');
    let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name { format!("*{}*", name.replace('_', " ")) } else { "...".into() }
}

/// Merges errors that have the same texts.
fn merged(entries: Vec<Entry>) -> Vec<Entry> {
    let mut states: BTreeMap<[String; 3], BTreeSet<String>> = BTreeMap::new();
    for entry in entries {
        states.entry([entry.message, entry.detail, entry.hint]).or_default().insert(entry.sqlstate);
    }
    let one = |([message, detail, hint], states): ([String; 3], BTreeSet<String>)| Entry {
        message,
        detail,
        hint,
        sqlstate: states.into_iter().collect::<Vec<_>>().join(", "),
    };
    states.into_iter().map(one).collect()
}

#[test]
fn errors_are_listed() -> Result<()> {
    let mut sources = Vec::new();
    for folder in ["core/src", "src"] {
        for text in texts(&root().join(folder), "rs")? {
            sources.push(syn::parse_file(&text)?);
        }
    }
    let mut entries = variants::entries(&sources)?;
    entries.extend(reports::entries(&sources)?);
    for text in texts(&root().join("src/sql"), "sql")? {
        entries.extend(statements::entries(&text)?);
    }
    let mut list = String::from(HEAD);
    // Drops errors whose message comes from another type, and notices.
    entries.retain(|entry| entry.message != "..." && entry.sqlstate != "00000");
    for entry in merged(entries) {
        ensure!(!entry.sqlstate.is_empty(), "{entry:?} has no SQLSTATE");
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let [message, detail, hint] = [&entry.message, &entry.detail, &entry.hint].map(|text| cell(text));
        writeln!(list, "| {message} | {} | {detail} | {hint} |", entry.sqlstate)?;
    }
    let path = root().join(LIST);
    if std::env::var_os("SNOWFLAKE_IDS_WRITE").is_some() {
        fs::write(&path, &list)?;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let other = list.lines().find(|line| !stored.lines().any(|stored| stored == *line));
    ensure!(
        stored == list,
        "{LIST} is not what the sources say, such as {other:?}; `make reference` writes it anew"
    );
    Ok(())
}
