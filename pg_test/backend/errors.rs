//! Test that `docs/reference/errors.md` lists the errors of this build: those of the types that derive `Explain`, and those that SQL
//! raises. `SNOWFLAKE_IDS_WRITE=1` writes the list again.

use super::raised;
use crate::pg::report::{sqlstate, sqlstate_of};
use snowflake_ids_core::error::Listed;
use snowflake_ids_core::registry::{accept, citus, error as registry, setup, wire};
use snowflake_ids_core::server::{self, lease};
use snowflake_ids_core::tag::{definition, privilege, serial};
use snowflake_ids_core::{Explain, Kind, bound, column, error, generator, ids, process, series, session};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const HEAD: &str = "# Errors

The errors, in the order of their messages. A word in italics, or `...`, stands for a value, or for words that depend on the case.
Messages that SQL puts together from parts are not here. A message that begins with *it* or *its* is about a registry, which the
text before it names. What to do about those that users meet, and which SQLSTATE counts when, is in [errors](../errors.md).

| message | SQLSTATE | DETAIL | HINT |
| --- | --- | --- | --- |
";

macro_rules! listed {
    ($($of:path;)*) => { [$(<$of as Explain>::listed()),*] };
}

/// Message, DETAIL and HINT.
pub type Texts = [String; 3];

/// Returns the texts of all files with this ending below a folder.
fn files(folder: &Path, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.fold(Vec::new(), |mut found, path| {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(fs::read_to_string(path).unwrap());
        }
        found
    })
}

/// Adds an error with each of its messages. A message gets its own text of each part, if the part has as many texts as there are
/// messages; else all of them.
fn add(listed: &Listed, entries: &mut BTreeMap<Texts, BTreeSet<String>>) {
    let states = listed.kinds.iter().map(|kind| sqlstate(sqlstate_of(*kind) as i32)).collect::<Vec<_>>();
    for (at, message) in listed.messages.iter().enumerate() {
        let own = |texts: &[String]| {
            if texts.len() == listed.messages.len() { texts[at..=at].to_vec() } else { texts.to_vec() }
        };
        let [detail, hint] = [&listed.details, &listed.hints].map(|texts| own(texts).join("<br>or: "));
        entries.entry([message.clone(), detail, hint]).or_default().extend(own(&states));
    }
}

#[test]
fn errors_are_listed() {
    let types = listed![
        accept::RequestError; bound::BoundSequenceError; citus::ClusterError; citus::ClusterNotice; citus::NoCoordinatorError; column::error::ColumnError; column::error::Obstacle;
        column::notice::Notice; column::series::FillError; setup::JoinError; setup::AllowError;
        crate::bound::error::SequenceError; crate::pg::error::ServerError;
        crate::registry::serve::RegistryFailure; crate::safe_position::SafePositionError;
        crate::series::error::NoNumberError; crate::sql::error::CallError; crate::sql::rights::RightsError; crate::tag::error::SegmentError;
        definition::DefinitionError; definition::Exhausted; definition::TagError; error::NotReadyError;
        error::TooLong; generator::drift::GeneratorError; generator::named::NamedError;
        generator::safe_position::SnapshotTooOld; session::SessionError; ids::encode::TextError;
        ids::id::IdError; ids::layout::LayoutError; ids::layout::TickError; ids::layout::change::ChangeError;
        ids::shard::ShardError; ids::uuid::UuidError; lease::Skew; privilege::PrivilegeError;
        process::locked::LockedError; registry::ConnectionError; registry::RegistryError;
        registry::Unregistered; registry::UnusableRegistry; series::SeriesError; serial::FormatError;
        server::issuer::IssuerError; server::issuer::NoRoom; server::state::StateError; lease::LeaseError;
        wire::Stranger;
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = [files(&root.join("core/src"), "rs"), files(&root.join("src"), "rs")].concat();
    let deriving: usize = sources.iter().map(|source| source.matches(", Explain)]").count()).sum();
    assert_eq!(types.len(), deriving, "types that derive Explain");
    let mut entries = BTreeMap::new();
    let errors = types.iter().flatten().filter(|listed| !listed.kinds.contains(&Kind::Notice));
    errors.for_each(|listed| add(listed, &mut entries));
    for (sqlstate, texts) in files(&root.join("src/sql"), "sql").iter().flat_map(|sql| raised::errors(sql)) {
        entries.entry(texts).or_default().insert(sqlstate);
    }
    let mut list = String::from(HEAD);
    // Another type has the messages without words.
    for (texts, states) in entries.iter().filter(|(texts, _)| texts[0].trim_matches('.').contains(' ')) {
        let states = states.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let [message, detail, hint] =
            texts.each_ref().map(|text| text.replace('|', "\\|").replace('\n', " "));
        writeln!(list, "| {message} | {states} | {detail} | {hint} |").unwrap();
    }
    let path = root.join("docs/reference/errors.md");
    if std::env::var_os("SNOWFLAKE_IDS_WRITE").is_some() {
        fs::write(&path, &list).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let other = list.lines().find(|line| !stored.lines().any(|stored| stored == *line));
    assert!(stored == list, "the list lacks {other:?}, or has too much; `make reference` writes it anew");
}
