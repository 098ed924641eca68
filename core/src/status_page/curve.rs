//! The curves of what was sampled.

use super::figure::{length, rate, time_of_day};
use super::html::Html;
use super::overview::moment;
use super::report::Running;
use crate::clock::micros;
use crate::history::Sample;
use std::fmt::Write;
use std::time::Duration;

/// The extent of a drawing.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 96.0;
/// How much is left free above the highest point.
const HEADROOM: f64 = 8.0;

/// How many points a curve has at most.
const MAX_POINTS: usize = 360;

/// A curve: what it shows, of each sample, and how a value is said.
struct Curve {
    title: &'static str,
    value: fn(&Sample) -> f64,
    say: fn(f64) -> String,
}

const CURVES: [Curve; 4] = [
    Curve { title: "Snowflake ids a second", value: |sample| sample.ids, say: rate },
    Curve { title: "Ids of tags a second", value: |sample| sample.tag_ids, say: rate },
    Curve { title: "Drift", value: |sample| sample.drift.as_secs_f64(), say: seconds },
    Curve { title: "Calls that waited, a second", value: waits, say: rate },
];

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn waits(sample: &Sample) -> f64 {
    sample.waits as f64 / sample.elapsed.as_secs_f64()
}

fn seconds(seconds: f64) -> String {
    length(Duration::from_secs_f64(seconds.max(0.0)))
}

/// What was sampled.
pub fn curves(page: &mut Html, running: &Running) {
    page.raw("<section aria-labelledby=\"lately\"><h2 id=\"lately\">The last hour</h2>");
    let skipped = running.history.len().saturating_sub(MAX_POINTS);
    let samples = running.history.get(skipped..).unwrap_or_default();
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) if samples.len() > 1 => {
            page.raw("<p class=\"quiet\">From ");
            moment(page, first.at);
            page.raw(" to ");
            moment(page, last.at);
            page.raw(", as the view <code>status_history</code> has it.</p><div class=\"curves\">");
            let span = Span::of(samples, running.limits.sample_interval);
            for curve in &CURVES {
                draw(page, curve, samples, &span);
            }
            page.raw("</div>");
        }
        _ if running.limits.sample_interval.is_zero() => {
            page.raw(
                "<p class=\"quiet\">Nothing is sampled: <code>snowflake_ids.sample_interval</code> is 0.</p>",
            );
        }
        _ => {
            page.raw("<p class=\"quiet\">There are no samples yet; one is taken each ");
            page.text(length(running.limits.sample_interval)).raw(" on a primary.</p>");
        }
    }
    page.raw("</section>");
}

/// Where samples lie in time.
struct Span {
    /// The instant of each, in microseconds since the one before the first.
    at: Vec<u64>,
    /// After such a pause a curve begins anew; 0 where nothing is sampled any more.
    gap: u64,
    begins: String,
    ends: String,
}

impl Span {
    fn of(samples: &[Sample], interval: Duration) -> Self {
        let mut passed = 0_u64;
        let at = samples.iter().map(|sample| {
            passed = passed.saturating_add(micros(sample.elapsed));
            passed
        });
        let say = |sample: Option<&Sample>| sample.map(|sample| time_of_day(sample.at)).unwrap_or_default();
        Self {
            at: at.collect(),
            gap: micros(interval.saturating_mul(3)),
            begins: say(samples.first()),
            ends: say(samples.last()),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "a place in a drawing")]
    fn x(&self, at: u64) -> f64 {
        let (first, last) = (self.at.first().copied().unwrap_or(0), self.at.last().copied().unwrap_or(1));
        WIDTH * at.saturating_sub(first) as f64 / last.saturating_sub(first).max(1) as f64
    }
}

fn draw(page: &mut Html, curve: &Curve, samples: &[Sample], span: &Span) {
    let values: Vec<_> = samples.iter().map(curve.value).collect();
    let highest = values.iter().fold(0.0_f64, |highest, value| highest.max(*value));
    let last = values.last().copied().map_or(String::new(), curve.say);
    let now = format!("{} {last}", if span.gap > 0 { "now" } else { "at last" });
    let (line, area) = paths(&values, samples, span, highest);
    page.raw("<figure><figcaption><strong>").raw(curve.title).raw("</strong> <span>").text(&now);
    page.raw(", at most ").text((curve.say)(highest)).raw("</span></figcaption>");
    page.raw("<svg viewBox=\"0 0 720 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    page.raw(curve.title).raw(": ").text(&now).raw(", at most ").text((curve.say)(highest)).raw("\">");
    page.raw("<path class=\"grid\" d=\"M0 98H720M0 50H720M0 8H720\"/><path class=\"area\" d=\"").shape(&area);
    page.raw("\"/><path class=\"line\" d=\"").shape(&line).raw("\"/></svg>");
    page.raw("<p class=\"axis\" aria-hidden=\"true\"><span>").text(&span.begins).raw("</span><span>");
    page.text(&span.ends).raw("</span></p></figure>");
}

/// The line, and what lies below it.
fn paths(values: &[f64], samples: &[Sample], span: &Span, highest: f64) -> (String, String) {
    let (mut line, mut area) = (String::new(), String::new());
    let mut before: Option<f64> = None;
    for ((value, sample), at) in values.iter().zip(samples).zip(&span.at) {
        let is_far = span.gap > 0 && micros(sample.elapsed) > span.gap;
        if is_far && let Some(x) = before.take() {
            let _ = write!(area, "L{x:.0} 98Z");
        }
        let (x, y) = (span.x(*at), y(*value, highest));
        let _ = match before {
            Some(_) => write!(line, "L{x:.0} {y:.0}").and_then(|()| write!(area, "L{x:.0} {y:.0}")),
            // A point alone is drawn by the round ends of its line.
            None => write!(line, "M{x:.0} {y:.0}h0").and_then(|()| write!(area, "M{x:.0} 98L{x:.0} {y:.0}")),
        };
        before = Some(x);
    }
    if let Some(x) = before {
        let _ = write!(area, "L{x:.0} 98Z");
    }
    (line, area)
}

fn y(value: f64, highest: f64) -> f64 {
    let share = if highest > 0.0 { value / highest } else { 0.0 };
    HEIGHT + 2.0 - share * (HEIGHT - HEADROOM + 2.0)
}
