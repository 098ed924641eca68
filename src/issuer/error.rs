//! What keeps this server from issuing, as a report.

use crate::pg::report::explained;
use crate::pg::server;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::issuer::IssuerError;

/// For a session: not everybody is to know where other servers are. The log has all of it.
#[cold]
pub fn report(error: &IssuerError) -> ErrorReport {
    let report = explained(error);
    if error.names_another_home() && !server::may_see_all_activity() {
        return report.set_detail("Its state was written in another data directory.");
    }
    report
}
