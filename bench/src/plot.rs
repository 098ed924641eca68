//! The figures as one picture: a panel of bars for each comparison.

use crate::report::{Bar, Panel, Report};
use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

const COLUMNS: usize = 2;
const WIDTH: i32 = 1120;
const COLUMN: i32 = WIDTH / 2;
/// Where the bars of a panel begin, and how long the longest is.
const BARS_AT: i32 = 230;
const LONGEST: f64 = 240.0;
const HEADER: i32 = 60;
const TITLE: i32 = 34;
const BAR: i32 = 22;

const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xeb);
const THEIRS: RGBColor = RGBColor(0xb1, 0xba, 0xc4);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws all panels of a report.
pub fn draw(report: &Report, path: &Path) -> Result<()> {
    try_draw(report, path).map_err(|error| anyhow!("can't draw {}: {error}", path.display()))
}

fn try_draw(report: &Report, path: &Path) -> Result<()> {
    let panels = report.panels();
    let rows: Vec<&[&Panel]> = panels.chunks(COLUMNS).collect();
    let height: i32 = HEADER + rows.iter().map(|row| row_height(row)).sum::<i32>();
    let size = (WIDTH.try_into()?, height.try_into()?);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    text(&root, "snowflake_ids beside Postgres's own keys", (20, 20), 18, HPos::Left)?;
    text(&root, report.conditions(), (20, 44), 11, HPos::Left)?;
    let mut top = HEADER;
    for row in rows {
        for (panel, left) in row.iter().zip([0, COLUMN]) {
            draw_panel(&root, panel, (left, top))?;
        }
        top += row_height(row);
    }
    root.present()?;
    Ok(())
}

fn row_height(row: &[&Panel]) -> i32 {
    let bars = row.iter().map(|panel| panel.bars.len()).max().unwrap_or(0);
    TITLE + BAR * i32::try_from(bars).unwrap_or(0) + 16
}

fn draw_panel(root: &Area, panel: &Panel, (left, top): (i32, i32)) -> Result<()> {
    text(root, &panel.title, (left + 20, top + 16), 14, HPos::Left)?;
    let longest = panel.bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let mut y = top + TITLE;
    for bar in &panel.bars {
        draw_bar(root, bar, longest, (left, y)).context("a bar")?;
        y += BAR;
    }
    Ok(())
}

fn draw_bar(root: &Area, bar: &Bar, longest: f64, (left, y): (i32, i32)) -> Result<()> {
    #[allow(clippy::cast_possible_truncation, reason = "pixels")]
    let length = (bar.value.max(0.0) / longest * LONGEST) as i32;
    let start = left + BARS_AT;
    let colour = if bar.ours { OURS } else { THEIRS };
    root.draw(&Rectangle::new([(start, y), (start + length, y + BAR - 6)], colour.filled()))?;
    let middle = y + (BAR - 6) / 2;
    text(root, &bar.label, (start - 8, middle), 12, HPos::Right)?;
    text(root, &digits(bar.value), (start + length + 6, middle), 12, HPos::Left)
}

/// Writes words of a height in pixels, beginning or ending at a place.
fn text(root: &Area, words: &str, at: (i32, i32), height: i32, side: HPos) -> Result<()> {
    // The library takes the size of a font to be 1.24 times what SVG calls it.
    let style = ("sans-serif", f64::from(height) * 1.24)
        .into_text_style(root)
        .color(&INK)
        .pos(Pos::new(side, VPos::Center));
    root.draw_text(words, &style, at)?;
    Ok(())
}

/// Three digits or so.
fn digits(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
