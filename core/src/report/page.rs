//! The status page: one document that stands alone, with a report in it that the browser draws.
//!
//! Nothing in it comes from elsewhere, and nothing but its own two blocks may run or style it: its Content-Security-Policy names their
//! hashes. What others have named is in the report alone, which is data, and whose letters cannot end it.

use std::fmt::Write;

/// The document, with [`MARK`] where the report belongs.
pub const TEMPLATE: &str = include_str!("page.html");
/// The place of the report.
pub const MARK: &str = "REPORT";

/// The page of a report, which is JSON, in ASCII.
pub fn page(report: &str) -> String {
    let mut page = String::with_capacity(TEMPLATE.len() + report.len() * 5 / 4);
    let (head, tail) = TEMPLATE.split_once(MARK).unwrap_or((TEMPLATE, ""));
    page.push_str(head);
    for letter in report.chars() {
        match letter {
            // It could end the block of the report, or begin a comment.
            '<' => page.push_str("\\u003c"),
            ' '..='~' | '\n' => page.push(letter),
            // Whatever encoding the page is stored in, these stay what they are. Writing to a text cannot fail.
            _ => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(page, "\\u{unit:04x}");
            }),
        }
    }
    page.push_str(tail);
    page
}
