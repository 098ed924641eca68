//! The layouts in use, how long they last, and a form that takes an id apart in the browser.

use super::figure::instant;
use super::html::Html;
use super::report::Report;
use crate::clock::{UnixMicros, YEAR_MICROS};
use crate::layout::{Field, Layout, Order, PRESETS};

/// A layout, and whose it is.
pub struct Used {
    whose: String,
    layout: Layout,
}

/// The server's layout and those of its generators.
pub fn used(report: &Report) -> Vec<Used> {
    let server = Used { whose: "this server".into(), layout: report.layout };
    let generators = report.running.iter().flat_map(|running| &running.generators.rows);
    let named = generators.filter_map(|generator| {
        let layout = generator.layout.parse().ok()?;
        Some(Used { whose: format!("generator {}", generator.name), layout })
    });
    [server].into_iter().chain(named).collect()
}

/// How long each layout lasts, with its bits drawn.
pub fn layouts(page: &mut Html, used: &[Used], now: UnixMicros) {
    page.raw("<section aria-labelledby=\"layouts\"><h2 id=\"layouts\">Layouts</h2>");
    page.raw(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Layouts and their ends\"><table>",
    );
    page.raw("<caption>Layouts and their ends</caption><thead><tr><th scope=\"col\">Of</th>");
    page.raw("<th scope=\"col\">Layout</th><th scope=\"col\">Bits, the highest first</th>");
    page.raw(
        "<th scope=\"col\" class=\"n\">Years left</th><th scope=\"col\">Last tick</th></tr></thead><tbody>",
    );
    for Used { whose, layout } in used {
        page.raw("<tr><th scope=\"row\">")
            .name(whose)
            .raw("</th><td><code>")
            .text(layout)
            .raw("</code></td><td>");
        bits(page, layout);
        let left = layout.last_instant().since(now);
        page.raw("</td><td class=\"n\">").text(format!("{:.1}", years(left))).raw("</td><td class=\"when\">");
        page.text(instant(layout.last_instant())).raw("</td></tr>");
    }
    page.raw("</tbody></table></div></section>");
}

#[allow(clippy::cast_precision_loss, reason = "one digit is shown")]
fn years(left: std::time::Duration) -> f64 {
    left.as_micros() as f64 / YEAR_MICROS as f64
}

/// The fields of an id in their order, the highest first.
fn fields(layout: &Layout) -> [Field; 5] {
    match layout.order() {
        Order::SequenceLast => {
            [Field::Ticks, Field::Datacenter, Field::Worker, Field::Rollback, Field::Sequence]
        }
        Order::SequenceFirst => {
            [Field::Ticks, Field::Sequence, Field::Datacenter, Field::Worker, Field::Rollback]
        }
    }
}

fn bits(page: &mut Html, layout: &Layout) {
    let shown = fields(layout).map(|field| (field, layout.widths().of(field)));
    page.raw("<svg class=\"bits\" viewBox=\"0 0 252 12\" aria-hidden=\"true\">");
    let mut x = 0_u32;
    for (field, width) in shown.into_iter().filter(|(_, width)| *width > 0) {
        page.raw(match field {
            Field::Ticks => "<rect class=\"ticks\"",
            Field::Datacenter => "<rect class=\"datacenter\"",
            Field::Worker => "<rect class=\"worker\"",
            Field::Rollback => "<rect class=\"rollback\"",
            Field::Sequence => "<rect class=\"sequence\"",
        });
        let wide = u32::from(width) * 4;
        page.raw(" y=\"0\" height=\"12\" x=\"").text(x).raw("\" width=\"").text(wide - 1).raw("\"/>");
        x += wide;
    }
    page.raw("</svg><span class=\"range\">");
    for (index, (field, width)) in shown.into_iter().filter(|(_, width)| *width > 0).enumerate() {
        page.raw(if index > 0 { " &#183; " } else { "" }).text(width).raw(" ").text(field);
    }
    page.raw("</span>");
}

/// The form. What it says of a layout is in its options, for the script.
pub fn form(page: &mut Html, used: &[Used]) {
    page.raw("<section aria-labelledby=\"decode\"><h2 id=\"decode\">Decode an id</h2>");
    page.raw("<p class=\"quiet\">An id, or a UUID of version 7 that was made as ids are. Nothing leaves this page.</p>");
    page.raw("<form id=\"form\"><p><label for=\"id\">Id or UUID</label>");
    page.raw("<input id=\"id\" name=\"id\" autocomplete=\"off\" spellcheck=\"false\" maxlength=\"64\"></p>");
    page.raw("<p><label for=\"layout\">Layout</label><select id=\"layout\" name=\"layout\">");
    page.raw("<optgroup label=\"In use\">");
    for Used { whose, layout } in used {
        option(page, whose, layout);
    }
    page.raw("</optgroup><optgroup label=\"Known systems\">");
    for (name, text) in PRESETS {
        if let Ok(layout) = text.parse() {
            option(page, name, &layout);
        }
    }
    page.raw("</optgroup></select></p><p><button>Decode</button></p></form>");
    page.raw("<div id=\"parts\" class=\"parts\" role=\"status\"></div>");
    page.raw("<noscript><p>Without scripts, ask the server: <code>SELECT * FROM snowflake_decode(id)</code>.</p></noscript>");
    page.raw("</section>");
}

fn option(page: &mut Html, whose: &str, layout: &Layout) {
    let widths = layout.widths();
    page.raw("<option data-widths=\"");
    for (index, field) in [Field::Ticks, Field::Datacenter, Field::Worker, Field::Rollback, Field::Sequence]
        .into_iter()
        .enumerate()
    {
        page.raw(if index > 0 { " " } else { "" }).text(widths.of(field));
    }
    page.raw("\" data-order=\"").raw(match layout.order() {
        Order::SequenceLast => "last",
        Order::SequenceFirst => "first",
    });
    page.raw("\" data-unit=\"").text(layout.unit()).raw("\" data-epoch=\"").text(layout.epoch().0).raw("\">");
    page.text(whose).raw(": ").text(layout).raw("</option>");
}
