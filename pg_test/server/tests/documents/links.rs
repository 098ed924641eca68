//! References in documents: to other documents and their sections, to files, and to tests.

use super::{Document, root};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// Links within the checkout whose target does not exist.
pub fn dead(documents: &[Document]) -> Vec<String> {
    documents
        .iter()
        .flat_map(|document| {
            let links = prose(&document.text).flat_map(links);
            let dead = links.filter(|link| !leads_somewhere(document, link, documents));
            dead.map(|link| format!("{}: {link} leads nowhere", document.path.display()))
        })
        .collect()
}

/// Documents below `docs` that the book's summary lacks, and documents that it lists twice. mdBook accepts neither.
pub fn not_once(documents: &[Document]) -> Vec<String> {
    let (summaries, others): (Vec<_>, Vec<_>) =
        documents.iter().partition(|document| document.path == Path::new("docs/SUMMARY.md"));
    let listed: Vec<PathBuf> = summaries
        .iter()
        .flat_map(|summary| prose(&summary.text).flat_map(links))
        .map(|link| plain(&Path::new("docs").join(link)))
        .collect();
    let wrong = others.iter().filter_map(|document| {
        let times = listed.iter().filter(|path| **path == document.path).count();
        let is_right = times == 1 || (times == 0 && !document.path.starts_with("docs"));
        (!is_right).then(|| format!("docs/SUMMARY.md has {} {times} times", document.path.display()))
    });
    wrong.collect()
}

/// A document's lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of a line's links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

fn leads_somewhere(document: &Document, link: &str, documents: &[Document]) -> bool {
    if link.contains("://") {
        return true;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let folder = document.path.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { document.path.clone() } else { plain(&folder.join(path)) };
    match anchor {
        None => root().join(target).exists(),
        Some(anchor) => documents
            .iter()
            .find(|document| document.path == target)
            .is_some_and(|document| anchors(&document.text).contains(anchor)),
    }
}

/// Resolves `..` in a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// The anchors of a document's headings: lower-case letters, digits, underscores and hyphens, with hyphens for spaces.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors: HashSet<String> = HashSet::new();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        let letters = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let anchor: String =
            letters.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        // The anchor of a repeated heading gets the suffix 1.
        let mut known = anchor.clone();
        let mut before = 0;
        while !anchors.insert(known) {
            before += 1;
            known = format!("{anchor}-{before}");
        }
    }
    anchors
}

/// Files that documents name between backticks, with their folder, and that do not exist in the checkout, in its `src`, or beside
/// the document.
pub fn missing_files(documents: &[Document]) -> Vec<String> {
    // The Citus page names files of Citus.
    let ours = documents.iter().filter(|document| !document.path.ends_with("citus.md"));
    ours.flat_map(|document| {
        let beside = root().join(document.path.parent().unwrap_or(Path::new("")));
        let folders = [root(), root().join("src"), beside];
        let names = prose(&document.text).flat_map(|line| line.split('`').skip(1).step_by(2));
        let missing = names.filter(move |name| {
            is_file_of_ours(name) && !folders.iter().any(|folder| folder.join(name).exists())
        });
        missing.map(|name| format!("{}: there is no {name}", document.path.display()))
    })
    .collect()
}

fn is_file_of_ours(name: &str) -> bool {
    const ENDINGS: [&str; 4] = ["rs", "sh", "sql", "md"];
    let path = Path::new(name);
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    let is_named = path.extension().and_then(|end| end.to_str()).is_some_and(|end| ENDINGS.contains(&end));
    is_plain && is_named && name.contains('/') && !name.starts_with('/') && !name.contains("OLD")
}

/// Names of test functions in `text` that no source has: names between backticks with three underscores or more. `...` is a
/// wildcard.
pub fn unknown_tests(text: &str, sources: &str) -> Vec<String> {
    let names = prose(text).flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_test = |name: &&str| {
        name.matches('_').count() >= 3
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    };
    let is_known = |name: &str| {
        let is_part = name.contains("...");
        let name = name.trim_matches('.');
        let needle = if is_part { name.to_owned() } else { format!("fn {name}(") };
        sources.contains(&needle)
    };
    let unknown = names.filter(is_test).filter(|name| !is_known(name));
    unknown.map(|name| format!("there is no test {name}")).collect()
}
