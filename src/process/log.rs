//! Log messages about repeated trouble, limited in number.

use crate::pg::clock::uptime;
use crate::pg::report::new_report;
use crate::pg::server;
use crate::shared::segments::SEGMENTS;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// Logs a message, unless this message was logged for this database within the last minute. The detail tells how often
/// the message was suppressed.
pub fn once(level: PgLogLevel, message: String) {
    let said = SEGMENTS
        .get()
        .map_or(Some(0), |segments| segments.logged.write().say(&(server::database(), &message), uptime()));
    let Some(more) = said else { return };
    let report = new_report(PgSqlErrorCode::ERRCODE_WARNING, message);
    let report = if more > 0 {
        report.set_detail(format!("This message was suppressed {more} times since it was last logged."))
    } else {
        report
    };
    report.report(level);
}
