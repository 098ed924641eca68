//! Each guard needs a test that leaves the guard out. `docs/guards.md` lists the functions that keep each guard, and the tests that
//! fail without the guard. `SNOWFLAKE_IDS_WRITE=1` rewrites the list.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const LIST: &str = "docs/guards.md";

const HEAD: &str = "# Guards

The rules that keep ids unique. For each rule: the place where the shipped code follows it, and the tests of `core/tests` that
switch it off and then expect a fault. `make test-core` checks this list against the code.

| guard | rule | kept in | tests without it |
| --- | --- | --- | --- |
";

/// Rust files in a folder of the core and below it: their paths from the root, and their lines.
fn sources(folder: &Path, found: &mut Vec<(String, Vec<String>)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((name, fs::read_to_string(&path).unwrap().lines().map(Into::into).collect()));
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn sources_of(folder: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    sources(&root().join(folder), &mut found);
    found
}

/// The guards in their order, each with its comment.
fn guards() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("core/src/guard.rs")).unwrap();
    let (mut guards, mut rule) = (Vec::new(), String::new());
    let body = text.lines().skip_while(|line| !line.starts_with("pub enum Guard")).skip(1);
    for line in body.map(str::trim).take_while(|line| *line != "}") {
        if let Some(comment) = line.strip_prefix("/// ") {
            rule = format!("{rule} {comment}").trim().into();
        } else if let Some(guard) = line.strip_suffix(',') {
            guards.push((guard.into(), std::mem::take(&mut rule)));
        }
    }
    guards
}

/// The first word of a text.
fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    end.map_or(text, |end| &text[..end])
}

/// The name of the function around a line: the nearest above with a smaller indent.
fn function(lines: &[String], index: usize) -> Option<&str> {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let mut around = lines[..index].iter().rev().filter(|line| indent(line) < indent(&lines[index]));
    around.find_map(|line| Some(word(line.split_once("fn ")?.1)))
}

/// The name of the function around a line in which the shipped code asks whether a guard holds.
fn kept<'a>(lines: &'a [String], index: usize, guard: &str) -> Option<&'a str> {
    function(lines, index).filter(|_| lines[index].contains(&format!("holds(Guard::{guard})")))
}

/// The name of the test whose line leaves the guard out, or that a list names with the guard: `test: Guard ...;`.
fn left_out<'a>(lines: &'a [String], index: usize, guard: &str) -> Option<&'a str> {
    let line = lines[index].trim();
    if let Some((before, after)) = line.split_once("Guard::") {
        return function(lines, index).filter(|_| word(after) == guard && !before.ends_with("holds("));
    }
    let (test, after) = line.strip_suffix(';')?.split_once(": ")?;
    (word(test) == test && word(after) == guard).then_some(test)
}

/// Finds the functions that mention a guard in these files.
fn places(
    sources: &[(String, Vec<String>)],
    guard: &str,
    at: for<'a> fn(&'a [String], usize, &str) -> Option<&'a str>,
) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for (file, lines) in sources {
        let found = (0..lines.len()).filter_map(|index| at(lines, index, guard));
        places.extend(found.map(|function| format!("`{file}`: `{function}`")));
    }
    places
}

#[test]
fn each_guard_has_a_test_without_it() {
    let (code, tests) = (sources_of("core/src"), sources_of("core/tests"));
    let mut list = String::from(HEAD);
    for (guard, rule) in guards() {
        let (kept, tested) = (places(&code, &guard, kept), places(&tests, &guard, left_out));
        assert!(!kept.is_empty(), "nothing in core/src asks holds(Guard::{guard})");
        assert!(!tested.is_empty(), "no test in core/tests leaves out {guard}");
        let cell = |places: BTreeSet<String>| places.into_iter().collect::<Vec<_>>().join("<br>");
        writeln!(list, "| {guard} | {rule} | {} | {} |", cell(kept), cell(tested)).unwrap();
    }
    let path = root().join(LIST);
    if std::env::var_os("SNOWFLAKE_IDS_WRITE").is_some() {
        fs::write(&path, &list).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let other = list.lines().find(|line| !stored.lines().any(|stored| stored == *line));
    assert!(
        stored == list,
        "{LIST} is not what the code says, such as {other:?}; SNOWFLAKE_IDS_WRITE=1 makes this test write it anew"
    );
}
