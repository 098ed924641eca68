//! The catalog's properties of the extension's objects, for comparing two databases.

use crate::sql::Session;
use anyhow::{Result, bail, ensure};
use postgres::Client;
use std::collections::BTreeSet;

/// A property of an object: the object's name, the property's name, and its value.
pub type Told = (String, String, String);

/// All properties, without OIDs.
#[track_caller]
pub fn objects(client: &mut Client) -> Result<BTreeSet<Told>> {
    // With this search path, names in other schemas are qualified.
    client.run("set search_path = pg_catalog")?;
    let rows = client.query(include_str!("catalog.sql"), &[])?;
    client.run("reset search_path")?;
    let told: BTreeSet<Told> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    ensure!(told.len() > 1000, "the catalog says only {} things of the extension", told.len());
    if let Some((name, _, unknown)) = told.iter().find(|(_, what, _)| what == "unknown") {
        bail!("{name}: {unknown}");
    }
    Ok(told)
}

/// Properties that only one of the two databases has, a paragraph each.
pub fn differences(here: (&str, &BTreeSet<Told>), there: (&str, &BTreeSet<Told>)) -> Vec<String> {
    let only = |(place, told): (&str, &BTreeSet<Told>), other: &BTreeSet<Told>| {
        let told = told.difference(other);
        told.map(|(name, what, told)| format!("{name}, {what}, only {place}: {told}")).collect::<Vec<_>>()
    };
    let mut found = [only(here, there.1), only(there, here.1)].concat();
    found.sort();
    found
}
