//! What this server tells of itself, as one page of HTML that stands alone: plain data in, a text out.
//!
//! Nothing in it comes from elsewhere, and nothing but its own two blocks may run or style it: the policy that it carries names their
//! hashes. Whatever others have named can only come in as text ([`Html`]). However much there is to show, the page ends: lists
//! show their first rows and say how many are left out, long texts are cut.

mod curve;
mod figure;
mod forbidden;
mod html;
mod layouts;
mod overview;
mod report;
mod tables;
mod tags;
mod trouble;

pub use forbidden::ForbiddenError;
pub use html::{Html, MAX_LETTERS};
pub use report::{Generator, Limits, Listing, Registry, Report, Running, Sequence, Series, Server, Status};
pub use tags::{Buffer, KEPT, Standing, Tag, Tags};
pub use trouble::{SECTIONS, Section, Severity, Trouble, troubles};

/// What the page looks like.
pub const STYLE: &str = include_str!("status_page/style.css");
/// What takes ids apart in it.
pub const SCRIPT: &str = include_str!("status_page/decode.js");

/// What a browser may run and load of the page: these two blocks, by their SHA-256, and nothing from elsewhere.
pub const POLICY: &str = "default-src 'none'; style-src 'sha256-m7fapHDOuTa3pFKKZ6SFmaI6SNAvQ/zi7Ozf1cjZv5I='; \
     script-src 'sha256-rZsz4UdNJoSu34IyngtmiHEN/s46Rw52tQmxUlf90RA='; img-src data:; base-uri 'none'; form-action 'none'";

/// Where the sections of the page are.
const PLACES: [(&str, &str); 10] = [
    ("#troubles", "Attention"),
    ("#server", "Server"),
    ("#lately", "Last hour"),
    ("#tags", "Tags"),
    ("#generators", "Generators"),
    ("#series", "Series"),
    ("#registries", "Registries"),
    ("#sequences", "Sequences"),
    ("#layouts", "Layouts"),
    ("#decode", "Decode"),
];

/// The page.
pub fn render(report: &Report) -> String {
    let mut page = Html::default();
    let (found, used) = (troubles(report), layouts::used(report));
    head(&mut page, report);
    overview::header(&mut page, report, &found);
    navigation(&mut page, report.running.is_some());
    page.raw("<main id=\"main\">");
    overview::troubles(&mut page, &found);
    overview::server(&mut page, report);
    if let Some(running) = &report.running {
        curve::curves(&mut page, running);
        tables::tables(&mut page, running, report.at);
    }
    layouts::layouts(&mut page, &used, report.at);
    layouts::form(&mut page, &used);
    page.raw("</main><footer><p>Counts begin when the server starts. Of each list the page shows what its role may see; ");
    page.raw(
        "all of it is in the views of the schema <code>snowflake_ids</code>.</p></footer></div><script>",
    );
    page.raw(SCRIPT).raw("</script></body></html>\n");
    page.into_string()
}

fn head(page: &mut Html, report: &Report) {
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"").raw(POLICY).raw("\">");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    page.raw("<meta name=\"referrer\" content=\"no-referrer\"><meta name=\"robots\" content=\"noindex\">");
    page.raw("<title>").text(overview::name(&report.server)).raw(" - snowflake_ids</title>");
    page.raw("<link rel=\"icon\" href=\"data:,\"><style>").raw(STYLE).raw("</style></head><body>");
    page.raw("<a class=\"skip\" href=\"#main\">To the content</a><div class=\"page\">");
}

/// Links to the sections that are there.
fn navigation(page: &mut Html, is_running: bool) {
    page.raw("<nav aria-label=\"Sections\"><ul>");
    for (place, name) in PLACES {
        if is_running || matches!(place, "#troubles" | "#server" | "#layouts" | "#decode") {
            page.raw("<li><a href=\"").raw(place).raw("\">").raw(name).raw("</a></li>");
        }
    }
    page.raw("</ul></nav>");
}
