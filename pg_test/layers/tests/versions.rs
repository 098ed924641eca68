//! Tests that Cargo.toml, META.json (for PGXN), the control file and the changelog have the same version.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// The workspace's version in Cargo.toml.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> Result<String> {
    fs::read_to_string(path(name)).with_context(|| format!("cannot read {name}"))
}

/// Returns the control file's value for this name.
fn control(name: &str) -> Result<String> {
    let text = text("snowflake_ids.control")?;
    let values = text.lines().filter_map(|line| line.split_once(" = ")).filter(|(key, _)| *key == name);
    values.map(|(_, value)| value.trim_matches('\'').to_owned()).next().context("not in the control file")
}

/// PGXN's `testing` and `stable` mean released versions; `unstable` means a version in development.
#[test]
fn all_files_are_of_this_version() -> Result<()> {
    let (meta, changelog) = (text("META.json")?.parse::<Value>()?, text("CHANGELOG.md")?);
    let extension = &meta["provides"]["snowflake_ids"];
    let heading = changelog.lines().find(|line| line.starts_with("## ")).unwrap_or_default();
    let comment = control("comment")?;
    ensure!(control("default_version")? == "@CARGO_VERSION@", "the control file has a version of its own");
    ensure!(heading.starts_with(&format!("## {VERSION} (")), "CHANGELOG.md: {heading:?}, not {VERSION}");
    ensure!(meta["version"] == VERSION && extension["version"] == VERSION, "META.json is not of {VERSION}");
    ensure!(meta["abstract"] == comment.as_str() && extension["abstract"] == comment.as_str(), "{comment:?}");
    let is_unstable = meta["release_status"] == "unstable";
    ensure!(is_unstable == heading.ends_with("(unreleased)"), "META.json: release_status under {heading:?}");
    for file in ["file", "docfile"] {
        let name = extension[file].as_str().with_context(|| format!("META.json has no {file}"))?;
        ensure!(path(name).exists(), "META.json names {name}, which is not there");
    }
    Ok(())
}

#[test]
fn meta_json_needs_what_the_control_file_and_the_features_need() -> Result<()> {
    let meta = text("META.json")?.parse::<Value>()?;
    for field in ["name", "maintainer", "license"] {
        ensure!(!meta[field].is_null(), "META.json has no {field}, which PGXN asks for");
    }
    let required = &meta["prereqs"]["runtime"]["requires"];
    for name in control("requires")?.split(',').map(str::trim) {
        ensure!(!required[name].is_null(), "META.json does not require {name}");
    }
    let cargo = text("Cargo.toml")?;
    let majors: Vec<u32> =
        cargo.lines().filter_map(|line| line.strip_prefix("pg")?.split_once(" = ")?.0.parse().ok()).collect();
    let oldest = majors.iter().min().context("Cargo.toml has no feature pgN")?;
    let newest = majors.iter().max().context("Cargo.toml has no feature pgN")?;
    let range = format!(">= {oldest}.0.0, < {}.0.0", newest + 1);
    ensure!(required["PostgreSQL"] == range.as_str(), "META.json requires {required}, not {range}");
    Ok(())
}
