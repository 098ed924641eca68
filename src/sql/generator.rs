//! Named generators: their table and the functions that change it are written in SQL, in the file beside this one. Here is what
//! looks at rows, and what the view shows of a layout's counter.

use pgrx::prelude::*;

/// The schema of what the functions for administrators are made of.
#[pg_schema]
mod snowflake_ids_internal {
    use crate::named;
    use crate::pg::report::report;
    use crate::pg::text::Text;
    use crate::sql::layout;
    use crate::store::generator as store;
    use pgrx::heap_tuple::PgHeapTuple;
    use pgrx::pg_sys::panic::ErrorReport;
    use pgrx::prelude::*;
    use pgrx::{AllocatedByPostgres, WhoAllocated};
    use snowflake_ids_core::named::{MAX_NAME_BYTES, Named, NamedError, Row};

    /// Fails where no generator can be of these terms.
    #[pg_extern(volatile, parallel_safe)]
    fn generator_check(
        name: Option<Text<'_>>,
        layout: Option<Text<'_>>,
        modulus: Option<i32>,
        remainder: Option<i32>,
        sequence_start: Option<Text<'_>>,
        cache: Option<i32>,
    ) -> Result<(), ErrorReport> {
        let refused = |error: NamedError| report(&error);
        let name = name.ok_or(NamedError::NoName).map_err(refused)?;
        let name = name.bytes(MAX_NAME_BYTES, "name")?;
        named::checked(name).map_err(refused)?;
        let layout = layout.as_ref().map(|layout| layout.read("layout")).transpose()?;
        let start = sequence_start.as_ref().map(|start| start.read("sequence_start")).transpose()?;
        let row = Row {
            layout: layout.as_deref().unwrap_or_default(),
            modulus,
            remainder,
            sequence_start: start.as_deref(),
            cache,
        };
        let named = Named::new(&row).map_err(refused)?;
        named.check_name(&String::from_utf8_lossy(name)).map_err(refused)
    }

    /// Fails for a name that no generator has.
    #[pg_extern(volatile, parallel_safe)]
    fn generator_unknown(name: Option<Text<'_>>) -> Result<(), ErrorReport> {
        let name = name.ok_or_else(|| report(&NamedError::NoName))?;
        let name = named::checked(name.bytes(MAX_NAME_BYTES, "name")?);
        Err(report(&name.map_or_else(|error| error, |name| named::unknown(&name))))
    }

    /// The server's layout, written out.
    #[pg_extern(stable, parallel_safe)]
    fn server_layout() -> Result<String, ErrorReport> {
        Ok(layout::of_server()?.to_string())
    }

    /// Has all sessions look for generators anew.
    #[allow(clippy::unnecessary_wraps, reason = "the form of a trigger")]
    #[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.generator_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'generator_changed_trigger';")]
    fn generator_changed<'a>(
        _trigger: &'a PgTrigger<'a>,
    ) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
        if let Some(table) = store::table() {
            table.announce();
        }
        Ok(None::<PgHeapTuple<'a, AllocatedByPostgres>>)
    }
}

extension_sql_file!(
    "generator.sql",
    name = "generators",
    requires = [
        snowflake_ids_internal::generator_check,
        snowflake_ids_internal::generator_unknown,
        snowflake_ids_internal::server_layout,
        snowflake_ids_internal::generator_changed,
        "snowflake_nextval",
        "status_view"
    ]
);
