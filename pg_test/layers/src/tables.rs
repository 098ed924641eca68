//! Readers of source files for three questions: do the tables in the code match the SQL, does code open tables in other ways, and
//! do SQL functions lock the extension before they use it with more rights than the caller's?

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A table with its columns.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The table's name, without the schema.
    pub name: String,
    /// The names and types of the columns, in order.
    pub columns: Vec<(String, String)>,
}

/// Returns the files below a folder whose names have one of the endings, as pairs of relative path and text.
pub fn files(root: &Path, endings: &[&str]) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let ending = path.extension().unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|wanted| ending == *wanted) {
                found.push((path.strip_prefix(root)?.display().to_string(), fs::read_to_string(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn tokens(rust: &str) -> Result<TokenStream> {
    rust.parse().map_err(|error| anyhow!("{error}"))
}

/// Returns the identifiers in a file that begin with one of these strings.
pub fn names(rust: &str, beginnings: &[&str]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    collect_names(tokens(rust)?, &mut |name| {
        if beginnings.iter().any(|beginning| name.starts_with(beginning)) {
            found.insert(name);
        }
    });
    Ok(found)
}

fn collect_names(tokens: TokenStream, each: &mut impl FnMut(String)) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => each(name.to_string()),
            TokenTree::Group(group) => collect_names(group.stream(), each),
            _ => {}
        }
    }
}

/// Returns the tables that a file declares by `Table::new(c"name", &[(c"column", Type::Of), ...])`, or by another function of
/// `Table` that takes a name.
pub fn declared(rust: &str) -> Result<Vec<Table>> {
    let mut found = Vec::new();
    collect_declared(tokens(rust)?, &mut found);
    Ok(found)
}

fn collect_declared(tokens: TokenStream, found: &mut Vec<Table>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let before: String = tokens[place.saturating_sub(4)..place].iter().map(ToString::to_string).collect();
        let is_named = group.stream().to_string().starts_with("c\"");
        if before.starts_with("Table::") && is_named {
            let mut words = Vec::new();
            collect_words(group.stream(), &mut words);
            let mut words = words.into_iter();
            let name = words.next().unwrap_or_default();
            let columns = std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect();
            found.push(Table { name, columns });
        } else {
            collect_declared(group.stream(), found);
        }
    }
}

/// Collects the string literals and the names of types in a declaration.
fn collect_words(tokens: TokenStream, words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Literal(text) => {
                words.push(text.to_string().trim_start_matches('c').trim_matches('"').to_owned());
            }
            TokenTree::Ident(name) if name != "Type" => words.push(name.to_string()),
            TokenTree::Group(group) => collect_words(group.stream(), words),
            _ => {}
        }
    }
}

/// Returns the tables that a script creates in the extension's schema.
pub fn made(sql: &str) -> Vec<Table> {
    let makes = ["CREATE TABLE snowflake_ids.", "CREATE UNLOGGED TABLE snowflake_ids."];
    makes.iter().flat_map(|make| sql.split(make).skip(1)).filter_map(made_one).collect()
}

fn made_one(rest: &str) -> Option<Table> {
    const CONSTRAINTS: [&str; 6] = ["PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE", "CONSTRAINT"];
    let (name, rest) = rest.split_once('(')?;
    let parts = parts(rest);
    let columns = parts.iter().filter_map(|part| {
        let mut words = part.split_whitespace();
        let name = words.next().filter(|name| !CONSTRAINTS.contains(name))?;
        Some((name.to_owned(), words.next()?.to_owned()))
    });
    Some(Table { name: name.trim().to_owned(), columns: columns.collect() })
}

/// Returns the parts between the outermost commas, up to the closing parenthesis.
fn parts(sql: &str) -> Vec<String> {
    let (mut parts, mut depth, mut is_quoted) = (vec![String::new()], 0_u32, false);
    for letter in
        sql.lines().flat_map(|line| line.split("--").next().unwrap_or_default().chars().chain(['\n']))
    {
        match letter {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth == 0 => break,
            ')' if !is_quoted => depth -= 1,
            ',' if !is_quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

/// Returns the SQL types that a type of the code can read.
fn types_of(declared: &str) -> &'static [&'static str] {
    match declared {
        "Boolean" => &["boolean"],
        "Letter" => &["\"char\""],
        "Integer" => &["integer"],
        "Bigint" => &["bigint"],
        "Text" => &["text"],
        "Name" => &["name"],
        "Oid" => &["oid", "regrole", "regclass"],
        _ => &[],
    }
}

/// Returns the differences between the tables that the code declares and those that the SQL creates, one line for each.
pub fn differences(declared: &[Table], made: &[Table]) -> Vec<String> {
    let mut lines = Vec::new();
    for table in made {
        if !declared.iter().any(|other| other.name == table.name) {
            lines.push(format!("table {} is made, and not declared", table.name));
        }
    }
    for Table { name, columns } in declared {
        let Some(made) = made.iter().find(|other| other.name == *name) else {
            lines.push(format!("table {name} is declared, and not made"));
            continue;
        };
        for (column, declared) in columns {
            match made.columns.iter().find(|(other, _)| other == column) {
                None => lines.push(format!("table {name} has no column {column}")),
                Some((_, of)) if !types_of(declared).contains(&of.as_str()) => {
                    lines.push(format!(
                        "column {column} of table {name} is of type {of}, and declared {declared}"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    lines
}

/// Returns the functions of a script that lock the extension too late. Such a function's body does not begin with a call of
/// `snowflake_extension_keep()`, or a declaration before this call names an object of the extension. Checks all functions that call
/// `snowflake_extension_keep()`, and all SECURITY DEFINER functions that are not triggers.
pub fn late_keepers(sql: &str) -> Vec<String> {
    let late = sql.split("CREATE ").skip(1).filter_map(|rest| {
        let (head, rest) = rest.split_once("$$")?;
        let body = rest.split("$$").next()?;
        let is_definer = head.contains("SECURITY DEFINER") && !head.contains("RETURNS trigger");
        let kept = body.find("BEGIN\n    PERFORM pg_catalog.snowflake_extension_keep();");
        let is_late = kept.is_none_or(|kept| body[..kept].contains("snowflake_ids"));
        let keeps = body.contains("snowflake_extension_keep()");
        ((is_definer || keeps) && is_late).then(|| head.split('(').next().unwrap_or_default().to_owned())
    });
    late.collect()
}
