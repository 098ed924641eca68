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

fn meta() -> Result<Value> {
    serde_json::from_str(&text("META.json")?).context("META.json")
}

/// Returns the control file's value for this name.
fn control(name: &str) -> Result<String> {
    let text = text("snowflake_ids.control")?;
    let values = text.lines().filter_map(|line| line.split_once(" = ")).filter(|(key, _)| *key == name);
    values.map(|(_, value)| value.trim_matches('\'').to_owned()).next().context("not in the control file")
}

#[test]
fn pgxn_finds_what_it_asks_for() -> Result<()> {
    let meta = meta()?;
    for field in ["name", "abstract", "version", "maintainer", "license", "provides", "meta-spec"] {
        ensure!(!meta[field].is_null(), "META.json has no {field}");
    }
    ensure!(meta["meta-spec"]["version"] == "1.0.0", "META.json is of no known form");
    Ok(())
}

/// PGXN's `testing` and `stable` mean released versions; `unstable` means a version in development.
#[test]
fn meta_json_says_whether_this_version_is_released() -> Result<()> {
    let meta = meta()?;
    let status = meta["release_status"].as_str().context("META.json has no release_status")?;
    let heading = heading_of_this_version()?;
    let fitting: &[&str] =
        if heading.ends_with("(unreleased)") { &["unstable"] } else { &["testing", "stable"] };
    ensure!(
        fitting.contains(&status),
        "META.json: release_status is {status}, and CHANGELOG.md has {heading:?}"
    );
    Ok(())
}

#[test]
fn meta_json_is_of_this_version_and_extension() -> Result<()> {
    let meta = meta()?;
    let extension = &meta["provides"]["snowflake_ids"];
    ensure!(meta["version"] == VERSION, "META.json: version is {}, not {VERSION}", meta["version"]);
    ensure!(
        extension["version"] == VERSION,
        "META.json: its extension is {}, not {VERSION}",
        extension["version"]
    );
    let comment = control("comment")?;
    for abstracted in [&meta["abstract"], &extension["abstract"]] {
        ensure!(*abstracted == comment.as_str(), "META.json says {abstracted}, the control file {comment:?}");
    }
    for file in ["file", "docfile"] {
        let name = extension[file].as_str().with_context(|| format!("META.json has no {file}"))?;
        ensure!(path(name).exists(), "META.json names {name}, which is not there");
    }
    Ok(())
}

#[test]
fn meta_json_needs_what_the_control_file_and_the_features_need() -> Result<()> {
    let meta = meta()?;
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
    ensure!(
        required["PostgreSQL"] == range.as_str(),
        "META.json requires {}, not {range}",
        required["PostgreSQL"]
    );
    Ok(())
}

#[test]
fn the_control_file_takes_its_version_from_cargo() -> Result<()> {
    let version = control("default_version")?;
    ensure!(version == "@CARGO_VERSION@", "the control file has {version}");
    Ok(())
}

/// Returns the changelog's first version heading.
fn heading_of_this_version() -> Result<String> {
    let changelog = text("CHANGELOG.md")?;
    let first = changelog.lines().find(|line| line.starts_with("## "));
    first.map(str::to_owned).context("CHANGELOG.md has no version")
}

#[test]
fn the_version_has_an_entry_in_the_changelog() -> Result<()> {
    let first = heading_of_this_version()?;
    ensure!(
        first.starts_with(&format!("## {VERSION} (")),
        "CHANGELOG.md begins with {first:?}, not {VERSION}"
    );
    Ok(())
}
