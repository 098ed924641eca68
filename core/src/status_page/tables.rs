//! Tags, generators, series, registries and bound sequences.

use super::figure::{count, instant, length, percent};
use super::html::Html;
use super::overview::moment;
use super::report::{Generator, Listing, Registry, Running, Sequence, Series};
use super::tags::{Buffer, Standing, Tag, Tags};
use crate::clock::UnixMicros;

/// So many tags are shown with all that is known of them,
const FULL: usize = 50;
/// the others by name, as long as these bytes last.
const COMPACT_BYTES: usize = 150_000;

/// A column of a table.
struct Column {
    title: &'static str,
    is_number: bool,
}

const fn words(title: &'static str) -> Column {
    Column { title, is_number: false }
}

const fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}

/// What there is to say of all of them.
pub fn tables(page: &mut Html, running: &Running, now: UnixMicros) {
    tags(page, &running.tags, now);
    listing(page, &GENERATORS, &running.generators, generator);
    listing(page, &SERIES, &running.series, series);
    listing(page, &REGISTRIES, &running.registries, registry);
    listing(page, &SEQUENCES, &running.sequences, sequence);
}

fn begin(page: &mut Html, caption: &'static str, columns: &'static [Column]) {
    page.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"").raw(caption);
    page.raw("\"><table><caption>").raw(caption).raw("</caption><thead><tr>");
    for column in columns {
        page.raw(if column.is_number { "<th scope=\"col\" class=\"n\">" } else { "<th scope=\"col\">" });
        page.raw(column.title).raw("</th>");
    }
    page.raw("</tr></thead><tbody>");
}

fn end(page: &mut Html) {
    page.raw("</tbody></table></div>");
}

/// A view of which the first rows are shown.
struct View {
    id: &'static str,
    heading: &'static str,
    none: &'static str,
    caption: &'static str,
    columns: &'static [Column],
    /// Where all rows are.
    rows_in: &'static str,
}

fn listing<T>(page: &mut Html, view: &View, listing: &Listing<T>, row: fn(&mut Html, &T)) {
    page.raw("<section aria-labelledby=\"").raw(view.id).raw("\"><h2 id=\"").raw(view.id).raw("\">");
    page.raw(view.heading).raw("</h2>");
    if listing.rows.is_empty() {
        page.raw("<p class=\"quiet\">").raw(view.none).raw("</p></section>");
        return;
    }
    begin(page, view.caption, view.columns);
    listing.rows.iter().for_each(|one| row(page, one));
    end(page);
    let rest = listing.total.saturating_sub(listing.rows.len() as u64);
    if rest > 0 {
        page.raw("<p class=\"quiet\">").text(count(rest)).raw(" more are left out: see <code>");
        page.raw(view.rows_in).raw("</code>.</p>");
    }
    page.raw("</section>");
}

fn cell(page: &mut Html, value: &str) {
    page.raw("<td>").name(value).raw("</td>");
}

fn figure(page: &mut Html, value: &str) {
    page.raw("<td class=\"n\">").text(value).raw("</td>");
}

fn at(page: &mut Html, at: Option<UnixMicros>) {
    page.raw("<td class=\"when\">");
    match at {
        Some(at) => moment(page, at),
        None => {
            page.raw("&#8211;");
        }
    }
    page.raw("</td>");
}

const TAGS: [Column; 7] = [
    words("Tag"),
    words("Standing"),
    words("Buffers"),
    number("Ids issued"),
    number("Refills"),
    number("Waits"),
    words("Used up"),
];

fn tags(page: &mut Html, tags: &Tags, now: UnixMicros) {
    page.raw("<section aria-labelledby=\"tags\"><h2 id=\"tags\">Tags</h2>");
    let rows = tags.in_order();
    if rows.is_empty() {
        page.raw("<p class=\"quiet\">There is no tag that this role may see.</p></section>");
        return;
    }
    census(page, tags);
    let (full, rest) = rows.split_at(rows.len().min(FULL));
    begin(page, "Tags, those that need attention first", &TAGS);
    for (standing, tag) in full {
        row(page, *standing, tag, now);
    }
    end(page);
    if !rest.is_empty() {
        compact(page, rest, tags.total() - full.len() as u64);
    }
    page.raw("</section>");
}

fn census(page: &mut Html, tags: &Tags) {
    page.raw("<p class=\"quiet\">").text(count(tags.total())).raw(if tags.total() == 1 {
        " tag"
    } else {
        " tags"
    });
    for standing in Standing::ALL {
        if tags.count(standing) > 0 {
            page.raw(", ").text(count(tags.count(standing))).raw(" ").raw(said(standing));
        }
    }
    page.raw(".</p>");
}

const fn said(standing: Standing) -> &'static str {
    match standing {
        Standing::Failed => "without ids",
        Standing::Failing => "refills fail",
        Standing::EndsSoon => "ends soon",
        Standing::Dry => "waits for a refill",
        Standing::EndsThisYear => "ends this year",
        Standing::Fine => "fine",
        Standing::Idle => "idle",
    }
}

const fn badge(standing: Standing) -> &'static str {
    match standing {
        Standing::Failed | Standing::EndsSoon => "<span class=\"badge alarm\">",
        Standing::Failing | Standing::Dry | Standing::EndsThisYear => "<span class=\"badge warning\">",
        Standing::Fine => "<span class=\"badge fine\">",
        Standing::Idle => "<span class=\"badge note\">",
    }
}

fn row(page: &mut Html, standing: Standing, tag: &Tag, now: UnixMicros) {
    page.raw("<tr><th scope=\"row\">");
    name(page, tag);
    page.raw("</th><td>").raw(badge(standing)).raw(said(standing)).raw("</span>");
    if let Some(trouble) = &tag.trouble {
        page.raw(" ").name(trouble);
    }
    page.raw("</td><td>");
    buffers(page, tag);
    page.raw("</td>");
    figure(page, &count(tag.ids_issued));
    let took = tag.last_refill.map(|took| format!("{}, last {}", count(tag.refills), length(took)));
    figure(page, &took.unwrap_or_else(|| count(tag.refills)));
    let longest = tag.longest_wait.map(|wait| format!("{}, longest {}", count(tag.waits), length(wait)));
    figure(page, &longest.unwrap_or_else(|| count(tag.waits)));
    page.raw("<td class=\"when\">");
    match tag.exhausted_at {
        Some(end) => page.raw("in ").text(length(end.since(now))),
        None => page.raw("&#8211;"),
    };
    page.raw("</td></tr>");
}

fn name(page: &mut Html, tag: &Tag) {
    page.name(&tag.tag);
    if let Some(database) = &tag.database {
        page.raw(" <small>in ").name(database).raw("</small>");
    }
}

/// What is left, drawn and said.
fn buffers(page: &mut Html, tag: &Tag) {
    let Some(current) = tag.current else {
        page.raw("<span class=\"quiet\">none in memory</span>");
        return;
    };
    let left = 1.0 - current.used.clamp(0.0, 1.0);
    page.raw("<svg class=\"buffers\" viewBox=\"0 0 124 12\" aria-hidden=\"true\">");
    page.raw("<rect class=\"room\" x=\".5\" y=\".5\" width=\"60\" height=\"11\" rx=\"3\"/>");
    page.raw("<rect class=\"left\" x=\".5\" y=\".5\" height=\"11\" rx=\"3\" width=\"")
        .text(format!("{:.0}", left * 60.0));
    page.raw("\"/><rect class=\"room\" x=\"63.5\" y=\".5\" width=\"60\" height=\"11\" rx=\"3\"/>");
    if tag.next.is_some() {
        page.raw("<rect class=\"left\" x=\"63.5\" y=\".5\" width=\"60\" height=\"11\" rx=\"3\"/>");
    }
    page.raw("</svg><span class=\"range\">").text(percent(left)).raw(" of ").text(range(current));
    match tag.next {
        Some(next) => page.raw(", then ").text(range(next)),
        None => page.raw(", no next one"),
    };
    page.raw("</span>");
}

fn range(buffer: Buffer) -> String {
    format!("{}-{}", buffer.first, buffer.last)
}

/// The names of those that are not shown in full, each with what is left of its current buffer.
fn compact(page: &mut Html, tags: &[(Standing, &Tag)], total: u64) {
    page.raw("<details><summary>").text(count(total)).raw(" more, by name</summary><ul class=\"names\">");
    let end = page.bytes() + COMPACT_BYTES;
    let mut shown = 0_u64;
    for (standing, tag) in tags {
        if page.bytes() >= end {
            break;
        }
        page.raw("<li>");
        name(page, tag);
        page.raw(" <span class=\"quiet\">");
        match (standing, tag.current) {
            (Standing::Fine, Some(current)) => page.text(percent(1.0 - current.used)).raw(" left"),
            (standing, _) => page.raw(said(*standing)),
        };
        page.raw("</span></li>");
        shown += 1;
    }
    page.raw("</ul>");
    if total > shown {
        page.raw("<p class=\"quiet\">").text(count(total - shown));
        page.raw(" more are left out: see <code>segment_status</code>.</p>");
    }
    page.raw("</details>");
}

const GENERATORS: View = View {
    id: "generators",
    heading: "Generators",
    none: "This database has no named generator.",
    caption: "Named generators of this database",
    columns: &[
        words("Generator"),
        words("State"),
        words("Layout"),
        words("Shard"),
        words("Last id"),
        number("Drift"),
        number("Years left"),
    ],
    rows_in: "generator_status",
};

fn generator(page: &mut Html, generator: &Generator) {
    page.raw("<tr><th scope=\"row\">").name(&generator.name).raw("</th>");
    cell(page, &generator.state);
    page.raw("<td><code>").text(&generator.layout).raw("</code></td>");
    cell(page, generator.shard.as_deref().unwrap_or("all"));
    at(page, generator.last_timestamp);
    figure(page, &generator.drift.map(length).unwrap_or_default());
    figure(page, &generator.years_left.map(|years| format!("{years:.1}")).unwrap_or_default());
    page.raw("</tr>");
}

const SERIES: View = View {
    id: "series",
    heading: "Series",
    none: "There is no series that this role may see.",
    caption: "Series of this database",
    columns: &[
        words("Series"),
        words("Kind"),
        words("Keys are"),
        number("Keys"),
        words("Begins anew"),
        words("Open to"),
    ],
    rows_in: "series_status",
};

fn series(page: &mut Html, series: &Series) {
    page.raw("<tr><th scope=\"row\">").name(&series.name).raw("</th>");
    cell(page, &series.kind);
    cell(page, &series.key_type);
    let keys = match (series.keys, series.all_keys_counted) {
        (Some(keys), Some(false)) => format!("{} or more", count(keys)),
        (Some(keys), _) => count(keys),
        (None, _) => "not counted".into(),
    };
    figure(page, &keys);
    cell(page, series.reset.as_deref().unwrap_or("never"));
    cell(page, if series.restricted { "some roles" } else { "every role" });
    page.raw("</tr>");
}

const REGISTRIES: View = View {
    id: "registries",
    heading: "Registries",
    none: "This database draws its ids from its own tables.",
    caption: "Registries on other servers",
    columns: &[
        words("Registry"),
        words("State"),
        number("Calls"),
        number("Failures"),
        words("Last answer"),
        number("Took"),
        words("Why it fails"),
    ],
    rows_in: "registry_status",
};

fn registry(page: &mut Html, registry: &Registry) {
    page.raw("<tr><th scope=\"row\">").name(&registry.server).raw("</th><td>");
    page.raw(match registry.state.as_str() {
        "up" => "<span class=\"badge fine\">",
        "failing" => "<span class=\"badge alarm\">",
        _ => "<span class=\"badge note\">",
    });
    page.text(&registry.state).raw("</span></td>");
    figure(page, &count(registry.calls));
    let failures = match registry.failures_in_a_row {
        0 => count(registry.failures),
        row => format!("{}, {} in a row", count(registry.failures), count(row)),
    };
    figure(page, &failures);
    at(page, registry.last_answer);
    figure(page, &registry.last_duration.map(length).unwrap_or_default());
    let retry = registry.retry_at.map(|at| format!("Tried again at {}.", instant(at))).unwrap_or_default();
    let error = registry.error.as_deref().unwrap_or("");
    cell(page, format!("{error} {retry}").trim());
    page.raw("</tr>");
}

const SEQUENCES: View = View {
    id: "sequences",
    heading: "Bound sequences",
    none: "No sequence is bound: nextval gives what it always gave.",
    caption: "Sequences that give ids",
    columns: &[
        words("Sequence"),
        words("Kind"),
        words("Tag or generator"),
        number("Increment"),
        words("Owned by"),
        words("Bound"),
    ],
    rows_in: "sequence_status",
};

fn sequence(page: &mut Html, sequence: &Sequence) {
    page.raw("<tr><th scope=\"row\">").name(&sequence.sequence).raw("</th>");
    cell(page, &sequence.kind);
    cell(page, sequence.tag.as_deref().or(sequence.generator.as_deref()).unwrap_or("the server's"));
    figure(page, &sequence.increment.to_string());
    cell(page, sequence.owner.as_deref().unwrap_or(""));
    at(page, sequence.bound_at);
    page.raw("</tr>");
}
