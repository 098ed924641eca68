//! The head of the page, what is wrong, and the server itself.

use super::figure::{count, instant, length, rate};
use super::html::Html;
use super::report::{Report, Running, Server, Status};
use super::trouble::{Severity, Trouble};
use crate::clock::UnixMicros;
use std::fmt::Display;

/// The most troubles that are shown.
const MAX_TROUBLES: usize = 40;

/// What the server is called, and whether all is well.
pub fn header(page: &mut Html, report: &Report, troubles: &[Trouble]) {
    let server = &report.server;
    page.raw("<header class=\"top\"><p class=\"product\">snowflake_ids ").text(&server.extension);
    page.raw("</p><h1>").name(name(server)).raw("</h1>");
    verdict(page, troubles);
    page.raw("<p class=\"taken\">As of ");
    moment(page, report.at);
    page.raw(", seen by role ").name(&server.role).raw(" in database ").name(&server.database);
    page.raw(". PostgreSQL ").text(&server.postgres).raw(".</p></header>");
}

/// What the page is called.
pub fn name(server: &Server) -> &str {
    if server.cluster_name.is_empty() { &server.database } else { &server.cluster_name }
}

fn verdict(page: &mut Html, troubles: &[Trouble]) {
    let of = |severity| troubles.iter().filter(|trouble| trouble.severity == severity).count();
    let (alarms, warnings) = (of(Severity::Alarm), of(Severity::Warning));
    if alarms + warnings == 0 {
        page.raw("<p class=\"verdict fine\"><span aria-hidden=\"true\">&#10003;</span> All is well</p>");
        return;
    }
    page.raw(if alarms > 0 { "<p class=\"verdict alarm\">" } else { "<p class=\"verdict warning\">" });
    page.raw("<span aria-hidden=\"true\">!</span> ");
    if alarms > 0 {
        page.text(alarms).raw(if alarms == 1 { " alarm" } else { " alarms" });
    }
    if alarms > 0 && warnings > 0 {
        page.raw(", ");
    }
    if warnings > 0 {
        page.text(warnings).raw(if warnings == 1 { " warning" } else { " warnings" });
    }
    page.raw("</p>");
}

/// What is wrong, with the way out.
pub fn troubles(page: &mut Html, troubles: &[Trouble]) {
    page.raw("<section aria-labelledby=\"troubles\"><h2 id=\"troubles\">What needs attention</h2>");
    if troubles.is_empty() {
        page.raw("<p class=\"quiet\">Nothing. Ids are issued, and what is watched is within its limits.</p>");
    } else {
        page.raw("<ul class=\"troubles\">");
        troubles.iter().take(MAX_TROUBLES).for_each(|trouble| one(page, trouble));
        page.raw("</ul>");
    }
    if troubles.len() > MAX_TROUBLES {
        page.raw("<p class=\"quiet\">").text(troubles.len() - MAX_TROUBLES).raw(" more are left out.</p>");
    }
    page.raw("</section>");
}

fn one(page: &mut Html, trouble: &Trouble) {
    page.raw(match trouble.severity {
        Severity::Alarm => "<li class=\"alarm\"><p class=\"badge\">Alarm</p><div>",
        Severity::Warning => "<li class=\"warning\"><p class=\"badge\">Warning</p><div>",
        Severity::Note => "<li class=\"note\"><p class=\"badge\">Note</p><div>",
    });
    page.raw("<h3>").name(&trouble.what).raw("</h3><p>").name(&trouble.detail).raw("</p><p>");
    page.raw("<strong>Way out:</strong> ").text(trouble.way_out).raw(" <cite>").text(trouble.section.page);
    page.raw(", &#8220;").text(trouble.section.heading).raw("&#8221;</cite></p></div></li>");
}

/// The figures of the server.
pub fn server(page: &mut Html, report: &Report) {
    page.raw("<section aria-labelledby=\"server\"><h2 id=\"server\">This server</h2>");
    if let Some(running) = &report.running {
        tiles(page, report.at, running);
    }
    page.raw("<dl class=\"facts\">");
    let server = &report.server;
    fact(page, "Role", if server.is_standby { "standby, issues no ids" } else { "primary" });
    if let Some(running) = &report.running {
        identity(page, report.at, &running.status);
        clock(page, &running.status);
        work(page, &running.status);
        fact(page, "Places for tags", &format!("{} of {}", running.places_used, running.limits.max_tags));
    }
    fact(page, "Cluster", &format!("{}, timeline {}", server.system_identifier, server.timeline));
    page.raw("</dl></section>");
}

fn tiles(page: &mut Html, now: UnixMicros, running: &Running) {
    let status = &running.status;
    // What was sampled before sampling was turned off says nothing of now.
    let last = running.history.last().filter(|_| !running.limits.sample_interval.is_zero());
    page.raw("<ul class=\"tiles\">");
    tile(page, "State", if status.is_well() { &status.state } else { "no ids" });
    tile(page, "Snowflake ids a second", &last.map_or("not sampled".into(), |last| rate(last.ids)));
    tile(page, "Ids of tags a second", &last.map_or("not sampled".into(), |last| rate(last.tag_ids)));
    tile(page, "Drift", &length(status.drift));
    if let Some(expiry) = status.lease_expires_at {
        tile(page, "Left of the lease", &length(expiry.since(now)));
    }
    tile(page, "Left of the layout", &format!("{:.1} years", status.years_left));
    page.raw("</ul>");
}

fn tile(page: &mut Html, what: &'static str, value: &str) {
    page.raw("<li><span class=\"what\">").raw(what).raw("</span> <span class=\"value\">");
    page.text(value).raw("</span></li>");
}

fn identity(page: &mut Html, now: UnixMicros, status: &Status) {
    let part = |number: Option<i32>| number.map_or("none yet".to_owned(), |number| number.to_string());
    fact(page, "Worker id", &part(status.worker_id));
    fact(page, "Datacenter id", &part(status.datacenter_id));
    if status.rollback.is_some_and(|rollback| rollback > 0) {
        fact(page, "Rollback", &part(status.rollback));
    }
    let scope = match &status.leased_from {
        Some(from) => format!("{}, leased from {from}", status.scope),
        None => status.scope.clone(),
    };
    fact(page, "Unique among", &scope);
    if let Some(expiry) = status.lease_expires_at {
        let left = expiry.since(now);
        begin(page, "Lease ends");
        moment(page, expiry);
        page.raw(", in ").text(length(left));
        end(page);
    }
}

fn clock(page: &mut Html, status: &Status) {
    if let Some(mark) = status.high_water_mark {
        begin(page, "High-water mark");
        moment(page, mark);
        end(page);
    }
    fact(page, "Drift now", &length(status.drift));
    let back = match status.steps_back {
        0 => "none noticed".to_owned(),
        steps => format!("{}, the largest {}", count(steps), length(status.largest_step_back)),
    };
    fact(page, "Steps back of the clock", &back);
    fact(page, "Steps forward", &count(status.steps_forward));
    fact(page, "Switches of the worker", &count(status.switches));
}

fn work(page: &mut Html, status: &Status) {
    fact(page, "Ids issued", &count(status.ids_issued));
    if let (Some(id), Some(at)) = (status.last_id, status.last_timestamp) {
        begin(page, "Last id");
        page.raw("<code>").text(id).raw("</code>, ");
        moment(page, at);
        end(page);
    }
    fact(page, "Ticks used up", &count(status.full_ticks));
    let reserved =
        format!("{}, {} by callers", count(status.reservations), count(status.reserved_by_callers));
    fact(page, "Reservations", &reserved);
}

fn begin(page: &mut Html, what: &'static str) {
    page.raw("<div><dt>").raw(what).raw("</dt><dd>");
}

fn end(page: &mut Html) {
    page.raw("</dd></div>");
}

fn fact(page: &mut Html, what: &'static str, value: &str) {
    begin(page, what);
    page.name(value);
    end(page);
}

/// An instant, which a browser reads, too.
pub fn moment(page: &mut Html, at: UnixMicros) {
    time(page, at, instant(at));
}

fn time(page: &mut Html, at: UnixMicros, shown: impl Display) {
    page.raw("<time datetime=\"").text(at).raw("\">").text(shown).raw("</time>");
}
