//! The output of psql for the statements of a document.

use super::blocks::Step;
use snowflake_ids_server_tests::prelude::*;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

/// Marks the beginning of each step in the output, before the step's number.
const MARK: &str = "-- step ";

/// The time limit of a document.
const LIMIT: Duration = Duration::from_mins(5);

/// Runs the steps in a session, and returns the differences between output and document.
pub fn differences(server: &Server, document: &Path, steps: &[Step]) -> Result<Vec<String>> {
    let own = document.file_stem().context("a document without a name")?.to_string_lossy().to_lowercase();
    let mut databases: Vec<&str> = steps.iter().filter_map(|step| step.database.as_deref()).collect();
    databases.sort_unstable();
    databases.dedup();
    let mut client = server.connect("postgres")?;
    for database in databases.iter().copied().chain([own.as_str()]) {
        // Workers that look for a registry may be connected to the other template.
        client.run(&format!("create database {database} template template0"))?;
    }
    let address = format!("host={} port={}", server.socket_folder().display(), server.port());
    let printed = run(server, &own, &script(&own, steps).replace("host=registry port=5432", &address))?;
    client.run("alter system reset all")?;
    server.read_files_again()?;
    let parts = parts(&printed);
    ensure!(
        parts.len() == steps.len(),
        "{}: psql ended after {} of {} steps; it printed\n{printed}",
        document.display(),
        parts.len(),
        steps.len(),
    );
    let judged = steps.iter().zip(parts).filter_map(|(step, lines)| {
        // psql echoes its input except empty lines.
        let repeated = step.code.iter().filter(|line| !line.is_empty()).count();
        let printed = lines.get(repeated..).unwrap_or_default();
        difference(step, printed).map(|told| format!("{}:{}: {told}", document.display(), step.line))
    });
    Ok(judged.collect())
}

fn script(own: &str, steps: &[Step]) -> String {
    let mut script = String::from("\\pset footer off\n\\set SHOW_CONTEXT never\n");
    let mut current = own;
    for (number, step) in steps.iter().enumerate() {
        let wanted = step.database.as_deref().unwrap_or(own);
        if wanted != current {
            let _ = writeln!(script, "\\connect {wanted}");
            current = wanted;
        }
        let _ = writeln!(script, "{MARK}{number}\n{}", step.code.join("\n"));
    }
    script
}

/// Runs a script by psql. Returns its output with errors, each statement before its result.
fn run(server: &Server, database: &str, script: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("input"), folder.path().join("output"));
    fs::write(&input, script)?;
    let printed = File::create(&output)?;
    let mut psql = server.command("psql");
    // psql flushes each echoed line, so that notices and errors on the other stream appear in order.
    psql.args(["--no-psqlrc", "--quiet", "--echo-all", "--dbname", database]);
    psql.arg("--set").arg(format!("socket={}", server.socket_folder().display()));
    psql.arg("--set").arg(format!("port={}", server.port()));
    psql.stdin(File::open(&input)?).stderr(Stdio::from(printed.try_clone()?)).stdout(printed);
    let mut session = psql.spawn().with_context(|| format!("cannot run {psql:?}"))?;
    let ended = wait::until(LIMIT, "psql to end", || Ok(session.try_wait()?));
    if ended.is_err() {
        session.kill()?;
        session.wait()?;
    }
    let printed = fs::read_to_string(&output)?;
    ended.with_context(|| format!("it printed so far:\n{printed}"))?;
    Ok(printed)
}

/// The lines of each step, without those before the first step.
fn parts(printed: &str) -> Vec<Vec<&str>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in printed.lines().filter(|line| !line.starts_with("\\connect")) {
        if line.starts_with(MARK) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(line);
        }
    }
    parts
}

/// The difference between the output of a step and the document, if they differ.
fn difference(step: &Step, printed: &[&str]) -> Option<String> {
    let is_error = |line: &&str| {
        line.starts_with("ERROR:") || line.starts_with("FATAL:") || line.starts_with("invalid command")
    };
    let is_right = if step.shown.is_empty() { !printed.iter().any(is_error) } else { agrees(step, printed) };
    let shown = if step.shown.is_empty() { "(no error)".into() } else { step.shown.join("\n") };
    let code = step.code.join("\n");
    (!is_right).then(|| format!("{code}\nis shown to print\n{shown}\nand prints\n{}", printed.join("\n")))
}

fn agrees(step: &Step, printed: &[&str]) -> bool {
    let shown: Vec<&str> = step.shown.iter().map(String::as_str).collect();
    let (shown, printed) = (tidy(&shown, step.varies), tidy(printed, step.varies));
    let values = printed.get(2..).filter(|_| printed.get(1).is_some_and(|line| is_rule(line)));
    shown == printed
        || values.is_some_and(|values| values.iter().map(|v| v.trim()).eq(shown.iter().map(|s| s.trim())))
}

/// Whether this is the rule below a single column's name.
fn is_rule(line: &str) -> bool {
    !line.is_empty() && line.chars().all(|c| c == '-')
}

/// Removes irrelevant differences from lines: trailing spaces, empty lines at the end, and empty results of void functions.
fn tidy(lines: &[&str], varies: bool) -> Vec<String> {
    let mut tidy: Vec<String> = Vec::new();
    for line in lines {
        let line = without_units(line.trim_end());
        tidy.push(if varies { without_numbers(&line) } else { line });
        if let [.., _, rule, value] = &tidy[..]
            && is_rule(rule)
            && value.is_empty()
        {
            tidy.truncate(tidy.len() - 3);
        }
    }
    while tidy.last().is_some_and(String::is_empty) {
        tidy.pop();
    }
    tidy
}

/// Removes the units of a setting's limits, which the server shows since 18: `(1 s .. 10 s)` becomes `(1 .. 10)`.
fn without_units(line: &str) -> String {
    let limits = line.strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
    let parts = limits.and_then(|(told, limits)| Some((told, limits.split_once(" .. ")?)));
    let Some((told, (lowest, highest))) = parts else { return line.to_owned() };
    let number = |limit: &str| limit.split(' ').next().unwrap_or_default().to_owned();
    format!("{told} ({} .. {})", number(lowest), number(highest))
}

/// Replaces each number by `0`, and several spaces or hyphens by one, because columns are as wide as their contents.
fn without_numbers(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line.trim().chars().peekable();
    while let Some(next) = rest.next() {
        if next.is_ascii_digit() {
            while rest.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
            kept.push('0');
        } else if !(matches!(next, ' ' | '-') && kept.ends_with(next)) {
            kept.push(next);
        }
    }
    kept
}
