//! Readers of source files for two questions: does code open tables in other ways than by `Table::open`, and do SQL functions lock
//! the extension before they use it with more rights than the caller's?

use anyhow::{Context, Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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

/// Returns the identifiers in a file that begin with one of these strings.
pub fn names(rust: &str, beginnings: &[&str]) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let tokens = rust.parse().map_err(|error| anyhow!("{error}"))?;
    collect_names(tokens, &mut |name| {
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
