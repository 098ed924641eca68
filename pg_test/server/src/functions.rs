//! The extension's functions that take text, read from the catalog. A test that calls them all needs no list.

use anyhow::Result;
use postgres::Client;

/// A function and the types of its arguments.
pub struct Function {
    name: String,
    types: Vec<String>,
    is_variadic: bool,
}

/// Finds the functions with an argument that can be made from text. Trigger functions have no arguments.
///
/// # Errors
/// The query fails.
pub fn with_texts(client: &mut Client) -> Result<Vec<Function>> {
    let rows = client.query(
        "select p.oid::regproc::text, p.provariadic <> 0,
                array(select format_type(t, null) from unnest(p.proargtypes) with ordinality as a(t, n) order by n)
         from pg_proc p join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
              join pg_extension e on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
              join pg_language l on l.oid = p.prolang
         where e.extname = 'snowflake_ids' and l.lanname <> 'internal'
               and p.proargtypes::oid[] && array['text', 'name', 'name[]', 'text[]', 'varchar', 'jsonb', 'json',
                                                 'bytea', 'cstring']::regtype[]::oid[]
         order by p.oid",
        &[],
    )?;
    rows.iter()
        .map(|row| {
            Ok(Function { name: row.try_get(0)?, is_variadic: row.try_get(1)?, types: row.try_get(2)? })
        })
        .collect()
}

impl Function {
    /// Builds a call of the function. `text`: an SQL expression for its text arguments; other arguments get plain values. The
    /// call needs a table `pg_temp.victim`.
    pub fn call(&self, text: &str) -> String {
        let mut arguments: Vec<_> = self.types.iter().map(|of| argument(of, text)).collect();
        if let Some(last) = arguments.last_mut().filter(|_| self.is_variadic) {
            last.insert_str(0, "variadic ");
        }
        format!("select {}({})::text is null", self.name, arguments.join(", "))
    }
}

fn argument(of: &str, text: &str) -> String {
    match of {
        "text" | "name" | "character varying" => format!("{text}::{of}"),
        "name[]" | "text[]" => format!("array[{text}]::{of}"),
        "bytea" => "$1::bytea".into(),
        "jsonb" | "json" => format!("to_{of}({text})"),
        "bigint" | "integer" | "smallint" | "numeric" | "double precision" => format!("1::{of}"),
        "boolean" => "false".into(),
        "regclass" => "'pg_temp.victim'::regclass".into(),
        "timestamp with time zone" | "date" => format!("'2026-11-20'::{of}"),
        _ => format!("null::{of}"),
    }
}
