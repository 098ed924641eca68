//! Test that the ratios in the README are those of the last benchmark.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;

/// Goals of the benchmark, and the words before each ratio in the README.
const RATIOS: [(&str, &str); 3] = [
    ("a call costs at most 0.25x nextval CACHE 1", "`snowflake_nextval()` costs "),
    ("segment_nextval('tag') costs at most 0.15x nextval CACHE 1", "`segment_nextval('tag')` "),
    ("COPY takes at most 0.9 times the time of bigint identity", "COPY takes "),
];

#[test]
fn the_readme_has_the_ratios_of_the_last_benchmark() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md"))?.replace('\n', " ");
    let results = fs::read_to_string(root.join("bench/results/latest.md"))?;
    for (goal, words) in RATIOS {
        let row =
            results.lines().find_map(|line| line.strip_prefix("| ")?.strip_prefix(goal)).context(goal)?;
        let ratio = row.split_whitespace().nth(1).context(row.to_owned())?;
        ensure!(readme.contains(&format!("{words}{ratio} ")), "README: {words:?} is not followed by {ratio}");
    }
    Ok(())
}
