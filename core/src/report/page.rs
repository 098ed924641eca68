//! The status page: one self-contained document with a JSON report. A script in the page displays the report.
//!
//! The page loads nothing. Its Content-Security-Policy allows only its own script and style, by their hashes. Names
//! that users chose are only in the report. The report is data, and the report's text is escaped so that the text
//! cannot end the script block.

use std::fmt::Write;

/// The document, with [`MARK`] in place of the report.
pub const TEMPLATE: &str = include_str!("page.html");
/// The text that the report replaces.
pub const MARK: &str = "REPORT";

/// Returns the page with the report `report`, which is JSON.
pub fn page(report: &str) -> String {
    let mut page = String::with_capacity(TEMPLATE.len() + report.len() * 5 / 4);
    let (head, tail) = TEMPLATE.split_once(MARK).unwrap_or((TEMPLATE, ""));
    page.push_str(head);
    for letter in report.chars() {
        match letter {
            // A `<` could end the script block or begin a comment.
            '<' => page.push_str("\\u003c"),
            ' '..='~' | '\n' => page.push(letter),
            // ASCII escapes survive any encoding of the page. A write to a string cannot fail.
            _ => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(page, "\\u{unit:04x}");
            }),
        }
    }
    page.push_str(tail);
    page
}
