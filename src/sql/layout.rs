//! Which layout a decode function uses: the server's, or the one it is given.

use crate::pg::report::report;
use crate::pg::text::Text;
use crate::settings;
use crate::shared::generator;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::Layout;
use std::cell::RefCell;

thread_local! {
    /// The layout text read last: a query mostly names one, for all its rows.
    static READ_LAST: RefCell<Option<(String, Layout)>> = const { RefCell::new(None) };
}

/// The server's own layout. Without shared memory it is what the configuration says.
pub fn of_server() -> Result<Layout, ErrorReport> {
    match generator::shared() {
        Some(shared) => Ok(shared.layout),
        None => read(&settings::layout_text_without_preload()),
    }
}

/// The layout of a text such as `41/5/5/12` or `twitter`.
pub fn named(text: &Text<'_>) -> Result<Layout, ErrorReport> {
    read(&text.read("layout")?)
}

/// Of a text that is not long.
fn read(text: &str) -> Result<Layout, ErrorReport> {
    READ_LAST.with_borrow_mut(|last| match last {
        Some((known, layout)) if known == text => Ok(*layout),
        _ => {
            let layout = text.parse().map_err(|error| report(&error))?;
            *last = Some((text.to_owned(), layout));
            Ok(layout)
        }
    })
}
