//! What is wrong, with the way out: what an operator is to read first.

use super::figure::{counted, instant, length};
use super::report::{Generator, Registry, Report, Running, Status};
use super::tags::{Standing, Tag, Tags};
use crate::clock::UnixMicros;
use std::time::Duration;

/// How bad it is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Ids are refused, or will be soon.
    Alarm,
    /// It takes action, not at once.
    Warning,
    /// It happened, or is good to know.
    Note,
}

/// A section of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The document.
    pub page: &'static str,
    /// The heading.
    pub heading: &'static str,
}

const fn section(page: &'static str, heading: &'static str) -> Section {
    Section { page, heading }
}

const CLOCKS: Section = section("docs/operations.md", "Clocks");
const STANDBYS: Section = section("docs/operations.md", "Standbys and promotion");
const TROUBLES: Section = section("docs/operations.md", "Troubles");
const WORKER_IDS: Section = section("docs/operations.md", "Worker ids");
const PLACES: Section = section("docs/operations.md", "Places for tags");
const STATE_FILE: Section = section("docs/errors.md", "The state file");
const ERRORS: Section = section("docs/errors.md", "Snowflake ids");
const GENERATORS: Section = section("docs/errors.md", "Named generators");
const REGISTRY: Section = section("docs/registry.md", "What happens when");
const LAYOUTS: Section = section("docs/layouts.md", "Changing it");

/// All that is referred to.
pub const SECTIONS: [Section; 10] =
    [CLOCKS, STANDBYS, TROUBLES, WORKER_IDS, PLACES, STATE_FILE, ERRORS, GENERATORS, REGISTRY, LAYOUTS];

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, without a full stop.
    pub what: String,
    /// The figures, as sentences; may be empty.
    pub detail: String,
    /// The way out, as sentences.
    pub way_out: &'static str,
    /// Where more is said.
    pub section: Section,
}

fn trouble(
    severity: Severity,
    what: impl Into<String>,
    detail: impl Into<String>,
    (way_out, section): (&'static str, Section),
) -> Trouble {
    Trouble { severity, what: what.into(), detail: detail.into(), way_out, section }
}

/// All that is wrong, the worst first.
pub fn troubles(report: &Report) -> Vec<Trouble> {
    let Some(running) = &report.running else { return vec![not_preloaded()] };
    let mut found = Vec::new();
    found.extend(state(report, &running.status));
    found.extend(clock(running));
    found.extend(lease(report.at, running));
    found.extend(running.registries.rows.iter().filter_map(answer));
    found.extend(tags(report.at, &running.tags));
    found.extend(workers(report, running));
    found.extend(end("this server's ids", running.status.years_left));
    found.extend(running.generators.rows.iter().flat_map(generator));
    found.sort_by_key(|trouble| trouble.severity);
    found
}

fn not_preloaded() -> Trouble {
    trouble(
        Severity::Alarm,
        "snowflake_ids was not loaded when the server started",
        "Ids can be decoded here, and none are issued.",
        ("Add snowflake_ids to shared_preload_libraries, and restart the server.", ERRORS),
    )
}

fn state(report: &Report, status: &Status) -> Option<Trouble> {
    if report.server.is_standby {
        let way_out = "Connect to the primary for ids. After a promotion this server issues them.";
        let what = "This server is a standby, which issues no ids";
        return Some(trouble(Severity::Note, what, "Ids can be decoded here.", (way_out, STANDBYS)));
    }
    let way_out = if status.state.contains("state") {
        (
            "Do not delete the file. The section names the function that settles it, once you know why.",
            STATE_FILE,
        )
    } else if status.state.contains("lease") || status.state.contains("worker id") {
        ("The server's log says why the lease was not renewed.", WORKER_IDS)
    } else if status.state.contains("clock") {
        (
            "Ids go on once the clock has caught up. If it was ahead by mistake, the section has ways out.",
            CLOCKS,
        )
    } else {
        ("A call for an id fails with the same words, and its HINT is the way out.", ERRORS)
    };
    (!status.is_well()).then(|| {
        let what = format!("This server issues no snowflake ids: {}", status.state);
        trouble(Severity::Alarm, what, "Ids of tags do not depend on this.", way_out)
    })
}

fn clock(running: &Running) -> Vec<Trouble> {
    let (status, limits) = (&running.status, &running.limits);
    let mut found = Vec::new();
    if status.clock_ahead > Duration::ZERO {
        found.push(trouble(
            Severity::Alarm,
            format!("The clock is {} ahead, and is not followed", length(status.clock_ahead)),
            "Ids go on with the time that has really passed.",
            ("Set the clock back; if it is right, SELECT snowflake_ids.clock_accept().", CLOCKS),
        ));
    }
    // Where no ids are issued any more, that is said already.
    if status.drift > limits.max_drift / 2 && status.is_well() {
        found.push(trouble(
            if status.drift >= limits.max_drift { Severity::Alarm } else { Severity::Warning },
            format!("Ids are {} ahead of the clock", length(status.drift)),
            format!("Calls wait, or fail, from {} on (max_drift).", length(limits.max_drift)),
            ("Set the clock right if it was stepped back; else ids are taken too fast.", CLOCKS),
        ));
    }
    let steps: u64 = running.history.iter().map(|sample| sample.steps_back + sample.steps_forward).sum();
    if steps > 0 {
        found.push(trouble(
            Severity::Warning,
            format!("The clock was stepped {} lately", times(steps)),
            format!("The largest step back was {}.", length(status.largest_step_back)),
            ("Find what sets the clock; let one service slew it.", CLOCKS),
        ));
    }
    found
}

fn times(number: u64) -> String {
    if number == 1 { "once".into() } else { counted(number, "time") }
}

fn lease(now: UnixMicros, running: &Running) -> Option<Trouble> {
    let expiry = running.status.lease_expires_at?;
    let left = expiry.since(now);
    (left < running.limits.lease_duration / 2).then(|| {
        trouble(
            if left < running.limits.lease_duration / 10 { Severity::Alarm } else { Severity::Warning },
            format!("The lease of the worker id ends in {}, and is not renewed", length(left)),
            format!("Ids are issued until {}.", instant(expiry)),
            ("See that the registry can be reached; the server's log says why it is not.", WORKER_IDS),
        )
    })
}

fn answer(registry: &Registry) -> Option<Trouble> {
    let since = registry.last_answer.map_or_else(
        || "It has given no answer since this server started.".to_owned(),
        |at| format!("It answered last at {}.", instant(at)),
    );
    let error = registry.error.as_ref().map(|error| format!("Why it fails: {error}")).unwrap_or_default();
    (registry.state == "failing").then(|| {
        trouble(
            Severity::Alarm,
            format!("The registry {} does not answer", registry.server),
            format!("{since} {error}").trim_end().to_owned(),
            ("Ids go on until the buffers and the lease are used up. Bring the registry back.", REGISTRY),
        )
    })
}

fn tags(now: UnixMicros, tags: &Tags) -> Vec<Trouble> {
    let worst = tags.in_order();
    let of = |severity, standing, what: &str, way_out| {
        let (count, first) = (tags.count(standing), worst.iter().find(|(stands, _)| *stands == standing));
        first.map(|(_, tag)| {
            let what = format!("{} {what}", counted(count, "tag"));
            trouble(severity, what, reason(now, tag), (way_out, TROUBLES))
        })
    };
    let refill = "The column Standing of the tag says why, and the section what to do.";
    let pace = "Raise max_value, or begin a new tag; the pace is that since the tag was first used.";
    [
        of(Severity::Alarm, Standing::Failed, "without ids, whose refills fail", refill),
        of(Severity::Warning, Standing::Failing, "whose refills fail", refill),
        of(Severity::Alarm, Standing::EndsSoon, "used up within 30 days", pace),
        of(Severity::Warning, Standing::EndsThisYear, "used up within a year", pace),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn reason(now: UnixMicros, tag: &Tag) -> String {
    match (&tag.trouble, tag.exhausted_at) {
        (Some(trouble), _) => format!("First of them is \"{}\": {trouble}.", tag.tag),
        (None, Some(end)) => format!("First of them is \"{}\", in {}.", tag.tag, length(end.since(now))),
        (None, None) => format!("First of them is \"{}\".", tag.tag),
    }
}

fn workers(report: &Report, running: &Running) -> Vec<Trouble> {
    let (used, places) = (running.places_used, running.limits.max_tags);
    let mut found = Vec::new();
    if !running.has_launcher && !report.server.is_standby {
        found.push(trouble(
            Severity::Warning,
            "The launcher does not run",
            "It starts the workers that refill tags. Snowflake ids go on, as calls reserve by themselves.",
            ("It comes back after a second, unless max_worker_processes are in use: raise it.", TROUBLES),
        ));
    }
    if used.saturating_mul(10) >= places.saturating_mul(9) {
        found.push(trouble(
            Severity::Warning,
            format!("{used} of {places} places for tags are taken"),
            "Places are a cache: a tag without one takes another's, and its first call waits for a refill.",
            ("Where metric_server counts many misses, raise snowflake_ids.max_tags, and restart the server.", PLACES),
        ));
    }
    found
}

/// How many years are left is told before the last five.
fn end(whose: &str, years: f64) -> Option<Trouble> {
    (years < 5.0).then(|| {
        trouble(
            if years < 1.0 { Severity::Alarm } else { Severity::Warning },
            format!("The layout of {whose} ends in {years:.1} years"),
            "After its last tick there are no more ids.",
            ("Change the layout; layout_change says from when on the new ids are above the old.", LAYOUTS),
        )
    })
}

fn generator(generator: &Generator) -> Vec<Trouble> {
    let misfit = (generator.fits == Some(false)).then(|| {
        trouble(
            Severity::Warning,
            format!("The generator {} does not fit this server", generator.name),
            generator.state.clone(),
            ("Give the generator a layout with a wider worker, or the server another worker id.", GENERATORS),
        )
    });
    let ends =
        generator.years_left.and_then(|years| end(&format!("the generator {}", generator.name), years));
    misfit.into_iter().chain(ends).collect()
}
