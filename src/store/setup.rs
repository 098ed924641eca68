//! SQL on roles, foreign servers and user mappings, for a server that joins a registry in one call. Call these functions with the
//! rights of the owner of the extension's tables.

use crate::pg::statement::Statement;
use pgrx::pg_sys::Oid;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use snowflake_ids_core::registry::setup::{ForeignServer, MADE_HERE, NodesRole, Values};

static ROLE: Statement = Statement::new(
    "SELECT r.rolcanlogin, EXISTS (SELECT FROM pg_roles AS s WHERE s.rolsuper AND pg_has_role(r.oid, s.oid, 'MEMBER'))
     FROM pg_roles AS r WHERE r.rolname = convert_from($1, 'UTF8')::name",
);

static HAS_WRAPPER: Statement =
    Statement::new("SELECT EXISTS (SELECT FROM pg_foreign_data_wrapper WHERE fdwname = 'postgres_fdw')");

/// The mapping of the role `$2` counts before that of PUBLIC.
static FOREIGN_SERVER: Statement = Statement::new(
    "SELECT coalesce(s.srvtype = $3, false),
            convert_to((SELECT coalesce(json_object_agg(option_name, option_value), '{}')
                        FROM pg_options_to_table(s.srvoptions))::text, 'UTF8'),
            CASE WHEN m.umuser IS NOT NULL THEN
                convert_to((SELECT coalesce(json_object_agg(option_name, option_value), '{}')
                            FROM pg_options_to_table(m.umoptions))::text, 'UTF8') END
     FROM pg_foreign_server AS s LEFT JOIN LATERAL (
         SELECT u.umuser, u.umoptions FROM pg_user_mapping AS u
         WHERE u.umserver = s.oid AND u.umuser IN ($2, 0) ORDER BY u.umuser DESC LIMIT 1) AS m ON true
     WHERE s.srvname = convert_from($1, 'UTF8')::name",
);

static MADE_SERVERS: Statement = Statement::new(
    "SELECT convert_to(s.srvname::text, 'UTF8'), m.oid IS NOT NULL,
            EXISTS (SELECT FROM pg_depend AS d
                    WHERE d.refclassid = 'pg_foreign_server'::regclass AND d.refobjid = s.oid
                        AND (d.classid, d.objid) <> ('pg_user_mapping'::regclass, coalesce(m.oid, 0)))
     FROM pg_foreign_server AS s LEFT JOIN pg_user_mapping AS m ON m.umserver = s.oid AND m.umuser = $1
     WHERE s.srvtype = $2 ORDER BY s.srvname",
);

/// Returns the role of this name.
pub fn nodes_role(role: &str) -> Result<Option<NodesRole>, SpiError> {
    ROLE.first(&[role.as_bytes().to_vec().into()], |row| {
        Ok(NodesRole { can_login: is(row, 1)?, can_be_superuser: is(row, 2)? })
    })
}

/// Returns whether this database has the foreign-data wrapper `postgres_fdw`.
pub fn has_wrapper() -> Result<bool, SpiError> {
    Ok(HAS_WRAPPER.first(&[], |row| is(row, 1))?.unwrap_or(false))
}

/// Returns the foreign server of this name, with the user mapping that counts for `owner`.
pub fn foreign_server(name: &str, owner: Oid) -> Result<Option<ForeignServer>, SpiError> {
    let arguments = [name.as_bytes().to_vec().into(), owner.into(), MADE_HERE.into()];
    FOREIGN_SERVER.first(&arguments, |row| {
        let values = |json: Vec<u8>| Values(serde_json::from_slice(&json).unwrap_or_default());
        Ok(ForeignServer {
            made_here: is(row, 1)?,
            server: values(row.get(2)?.unwrap_or_default()),
            mapping: row.get(3)?.map(values),
        })
    })
}

/// Returns the foreign servers that `registry_join` has made: name, whether `owner` has a user mapping, and whether other objects
/// depend on the server.
pub fn made_servers(owner: Oid) -> Result<Vec<(String, bool, bool)>, SpiError> {
    MADE_SERVERS.all(&[owner.into(), MADE_HERE.into()], |row| {
        let name = row.get::<Vec<u8>>(1)?.unwrap_or_default();
        Ok((String::from_utf8_lossy(&name).into_owned(), is(row, 2)?, is(row, 3)?))
    })
}

fn is(row: &SpiHeapTupleData<'_>, column: usize) -> Result<bool, SpiError> {
    Ok(row.get::<bool>(column)?.unwrap_or(false))
}
