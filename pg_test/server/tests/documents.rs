//! Checks of the documents: their SQL runs and prints what they show, their links lead somewhere, the book lists each document,
//! and the tests that they name exist.
//!
//! Each document has its own database and psql session, which runs its SQL blocks in order. A comment after a statement is what
//! psql prints for the statement. Any other comment comes after an empty line. For a single column, its name and rule may be left
//! out. The words after `sql` have these meanings:
//!
//! | block | treatment |
//! | --- | --- |
//! | ```` ```sql ```` | run; a statement with a comment has to print exactly that, and any other statement must not fail |
//! | ```` ```sql varies ```` | run like ```` ```sql ````, but numbers and times may differ |
//! | ```` ```sql database=ids ```` | run in the database `ids` |
//! | ```` ```sql ignore ```` | not run, because it needs other servers or an event that a document cannot cause |
//! | `<!-- sql`, up to `-->` | run, but hidden from readers: preparation for the next block |
//!
//! psql's variables `socket` and `port` contain the server's address, and `host=registry port=5432` in a statement stands for it. Documents share
//! one server, except those marked with [`ALONE`].

mod blocks;
mod links;
mod transcript;

use anyhow::{Context, Result, ensure};
use snowflake_ids_server_tests::Server;
use std::fs;
use std::path::{Path, PathBuf};

/// The checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Document {
    /// The path within the checkout.
    path: PathBuf,
    text: String,
}

/// All files with this ending in a folder and below it, without build results.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn documents() -> Result<Vec<Document>> {
    let root = root();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Document { path: path.strip_prefix(&root)?.to_owned(), text })
    };
    files(&root, "md")?.into_iter().map(read).collect()
}

/// Fails with all faults that were found.
fn none(found: &[String]) -> Result<()> {
    ensure!(found.is_empty(), "{} found:\n\n{}", found.len(), found.join("\n\n"));
    Ok(())
}

/// The mark of a document that needs a fresh server of its own.
const ALONE: &str = "<!-- on a server of its own -->";

/// A server with the settings that documents mention. Time limits are longer, because a busy machine may be slower than a
/// reader's.
fn server() -> Result<Server> {
    Server::builder()
        .without("snowflake_ids.worker_id")
        .set("timezone", "UTC")
        .set("statement_timeout", "1min")
        .set("snowflake_ids.registry_timeout", "30s")
        .set("snowflake_ids.segment_wait_timeout", "1min")
        .start()
}

#[test]
fn the_sql_of_the_documents_prints_what_they_show() -> Result<()> {
    let shared = server()?;
    let mut wrong = Vec::new();
    let mut shown = 0;
    for document in documents()? {
        let steps = blocks::steps(&document.text);
        shown += steps.iter().filter(|step| !step.shown.is_empty()).count();
        if document.text.contains(ALONE) {
            wrong.extend(transcript::differences(&server()?, &document.path, &steps)?);
        } else if !steps.is_empty() {
            wrong.extend(transcript::differences(&shared, &document.path, &steps)?);
        }
    }
    ensure!(shown > 0, "no document shows what a statement prints");
    none(&wrong)
}

#[test]
fn the_links_of_the_documents_lead_somewhere() -> Result<()> {
    none(&links::dead(&documents()?))
}

#[test]
fn the_book_has_each_document_once() -> Result<()> {
    none(&links::not_once(&documents()?))
}

#[test]
fn the_files_that_the_documents_name_are_there() -> Result<()> {
    none(&links::missing_files(&documents()?))
}

#[test]
fn the_tests_that_the_documents_name_are_there() -> Result<()> {
    let mut sources = String::new();
    for folder in ["pg_test/server/tests", "core/tests"] {
        for file in files(&root().join(folder), "rs")? {
            sources.push_str(&fs::read_to_string(file)?);
        }
    }
    let document = documents()?.into_iter().find(|document| document.path.ends_with("guarantees.md"));
    let document = document.context("docs/guarantees.md is missing")?;
    none(&links::unknown_tests(&document.text, &sources))
}
