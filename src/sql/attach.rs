//! Turning columns of tables into ones with our defaults, and back: written in SQL, in the files below.

use pgrx::prelude::*;

extension_sql_file!(
    "attach/attach.sql",
    name = "attach_attach",
    requires = ["segments", "registries", "segment_nextval"]
);
extension_sql_file!("attach/checks.sql", name = "attach_checks", requires = ["attach_attach"]);
extension_sql_file!("attach/columns.sql", name = "attach_columns", requires = ["attach_checks"]);
extension_sql_file!("attach/defaults.sql", name = "attach_defaults", requires = ["attach_columns"]);
extension_sql_file!("attach/changes.sql", name = "attach_changes", requires = ["attach_defaults"]);
extension_sql_file!("attach/notices.sql", name = "attach_notices", requires = ["attach_changes"]);
extension_sql_file!(
    "privileges.sql",
    name = "privileges",
    requires = ["attach_notices", "registries"],
    finalize
);
