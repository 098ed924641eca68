//! Measures snowflake ids against Postgres's own keys, on throwaway servers, in one run. Every important figure is a ratio of
//! two contestants that took turns on the same machine in the same minutes.

mod effort;
mod key;
mod pgbench;
mod report;
mod rounds;
mod section;
mod server;
mod session;
mod stats;
mod wal;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use effort::Effort;
use report::Report;
use section::Section;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// Measures snowflake ids against Postgres's own keys on throwaway servers
#[derive(Parser)]
struct Arguments {
    /// A few minutes instead of twenty-five: fewer rounds and rows, wider spreads
    #[arg(long)]
    quick: bool,
    /// Run this section alone and write no files; may be repeated
    #[arg(long, value_enum, value_name = "SECTION")]
    only: Vec<Section>,
    /// Where latest.md is written
    #[arg(long, value_name = "FOLDER", default_value = "bench/results")]
    results: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let all = arguments.only.is_empty();
    let sections = if all { Section::value_variants() } else { &arguments.only };

    let mut report = Report { conditions: server::describe()?, effort, sections: Vec::new() };
    for section in sections {
        let started = Instant::now();
        eprint!("{} ... ", section.title());
        report.sections.push((section.title(), section.measure(effort)?));
        eprintln!("{:.0} s", started.elapsed().as_secs_f64());
    }
    let text = report.markdown();
    println!("{text}");
    if all {
        let folder = &arguments.results;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(folder.join("latest.md"), text).context("cannot write latest.md")?;
        eprintln!("written: latest.md in {}", folder.display());
    }
    Ok(())
}
