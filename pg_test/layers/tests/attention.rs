//! Test that the documents contain every section that the view `attention` names in its actions.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;

#[test]
fn the_sections_that_are_named_are_there() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sql = fs::read_to_string(root.join("src/sql/report.sql"))?;
    let mut named = 0;
    for rest in sql.split("(docs/").skip(1) {
        let (page, rest) = rest.split_once(", \"").context(rest.to_owned())?;
        let (heading, _) = rest.split_once("\")").context(rest.to_owned())?;
        let text = fs::read_to_string(root.join("docs").join(page)).context(page.to_owned())?;
        let is_heading = |line: &str| line.trim_start_matches('#').strip_prefix(' ') == Some(heading);
        ensure!(text.lines().any(is_heading), "docs/{page} has no section {heading:?}");
        named += 1;
    }
    ensure!(named >= 10, "{named} sections are named");
    Ok(())
}
