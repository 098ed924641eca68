//! The figures as one picture in SVG: a panel of bars for each comparison.

use crate::key::is_ours;
use crate::report::{Panel, Report};

const COLUMNS: usize = 2;
const WIDTH: f64 = 1120.0;
/// The place where a panel's bars begin, and the length of the longest bar.
const BARS_AT: f64 = 230.0;
const LONGEST: f64 = 240.0;
const HEADER: f64 = 60.0;
const TITLE: f64 = 34.0;
const BAR: f64 = 22.0;

/// Draws all panels of a report.
pub fn svg(report: &Report) -> String {
    let panels: Vec<&Panel> = report.sections.iter().flat_map(|(_, outcome)| &outcome.panels).collect();
    let mut body = text("snowflake_ids beside Postgres's own keys", (20.0, 20.0), 18, "start");
    body += &text(&report.conditions, (20.0, 44.0), 11, "start");
    let mut top = HEADER;
    for row in panels.chunks(COLUMNS) {
        for (panel, left) in row.iter().zip([0.0, WIDTH / 2.0]) {
            body += &draw(panel, left, top);
        }
        let bars = row.iter().map(|panel| panel.bars.len()).max().unwrap_or(0);
        top += std::iter::repeat_n(BAR, bars).sum::<f64>() + TITLE + 16.0;
    }
    format!(
        "<svg width=\"{WIDTH}\" height=\"{top}\" viewBox=\"0 0 {WIDTH} {top}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"sans-serif\" fill=\"#24292f\">\n<rect width=\"{WIDTH}\" height=\"{top}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn draw(panel: &Panel, left: f64, top: f64) -> String {
    let mut drawn = text(&panel.title, (left + 20.0, top + 16.0), 14, "start");
    let longest = panel.bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let (start, mut y) = (left + BARS_AT, top + TITLE);
    for (label, value) in &panel.bars {
        let length = (value.max(0.0) / longest * LONGEST).floor();
        let colour = if is_ours(label) { "#1f6feb" } else { "#b1bac4" };
        let (height, middle) = (BAR - 6.0, y + (BAR - 6.0) / 2.0);
        let size = format!("width=\"{length}\" height=\"{height}\"");
        drawn.extend([
            format!("<rect x=\"{start}\" y=\"{y}\" {size} fill=\"{colour}\"/>\n"),
            text(label, (start - 8.0, middle), 12, "end"),
            text(&digits(*value), (start + length + 6.0, middle), 12, "start"),
        ]);
        y += BAR;
    }
    drawn
}

/// Draws words with a height in pixels. The words begin or end at a point.
fn text(words: &str, (x, y): (f64, f64), height: u32, anchor: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<text x=\"{x}\" y=\"{y}\" dy=\"0.35em\" text-anchor=\"{anchor}\" font-size=\"{height}\">{words}</text>\n"
    )
}

/// Formats a value with about three digits.
fn digits(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
