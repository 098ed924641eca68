//! The layout that a decode function uses: the server's layout, or the layout in the function's argument.

use crate::named;
use crate::pg::report::report;
use crate::pg::text::Text;
use crate::settings;
use crate::shared::generator::SHARED;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::generator::named::{MAX_NAME_BYTES, NamedError};
use snowflake_ids_core::{Layout, LayoutError};
use std::cell::RefCell;

thread_local! {
    /// The last layout text and its layout, because a query mostly uses one layout for all its rows.
    static READ_LAST: RefCell<Option<(String, Layout)>> = const { RefCell::new(None) };
}

/// Returns the server's own layout. If the library has no shared memory, returns the layout of the configuration file.
pub fn of_server() -> Result<Layout, ErrorReport> {
    match SHARED.get() {
        Some(shared) => Ok(shared.layout),
        None => read(&settings::layout_text_without_preload()).map_err(report),
    }
}

/// Returns the layout of a text such as `41/5/5/12` or `twitter`, or the layout of a named generator.
pub fn named(text: &Text<'_>) -> Result<Layout, ErrorReport> {
    let layout = text.read("layout")?;
    read(&layout).or_else(|no_layout| {
        let name = text.bytes(MAX_NAME_BYTES, "layout");
        match name.ok().map(named::look_up) {
            Some(Ok(known)) => Ok(known.named().layout),
            // The error for an invalid row is more helpful than the error for an invalid layout.
            Some(Err(error)) if !is_no_name(&error) => Err(report(error)),
            _ => Err(report(no_layout)),
        }
    })
}

/// Returns the layout that the text describes, or the layout of the generator that the text names. If neither exists, a text
/// without a slash gives the error for an unknown generator.
pub fn of_generator(text: &Text<'_>) -> Result<Layout, ErrorReport> {
    let generator = text.read("generator")?;
    match read(&generator) {
        Ok(layout) => Ok(layout),
        Err(no_layout) => match named::look_up(text.bytes(MAX_NAME_BYTES, "generator")?) {
            Ok(known) => Ok(known.named().layout),
            // A text with a slash is more likely an invalid layout than a name.
            Err(error) if is_no_name(&error) && generator.contains('/') => Err(report(no_layout)),
            Err(error) => Err(report(error)),
        },
    }
}

/// Returns whether the error says that no generator has this name.
const fn is_no_name(error: &NamedError) -> bool {
    use NamedError::{ControlName, LongName, NoName, Unknown};
    matches!(error, Unknown { .. } | NoName | LongName { .. } | ControlName)
}

/// Parses a layout, or returns the last layout if its text was identical. The text must be short, because it is cached.
fn read(text: &str) -> Result<Layout, LayoutError> {
    READ_LAST.with_borrow_mut(|last| match last {
        Some((known, layout)) if known == text => Ok(*layout),
        _ => {
            let layout = text.parse()?;
            *last = Some((text.to_owned(), layout));
            Ok(layout)
        }
    })
}
