//! How sessions are told why a registry on another server gave no response.

use crate::pg::server;
use pgrx::PgSqlErrorCode as Code;
use snowflake_ids_core::registry_error::{ConnectionError, RegistryError};

/// The SQLSTATE for whoever needs the response now.
pub fn code(error: &RegistryError) -> Code {
    match error {
        RegistryError::Failed(ConnectionError::Refused { code, .. }) => match code {
            b"42501" => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            b"25006" => Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
            _ => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        },
        RegistryError::Failed(_) => Code::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
        _ => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
    }
}

/// Why there is none, as is fit for the session's user.
pub fn shown(error: &RegistryError) -> String {
    if server::may_see_all_activity() { error.to_string() } else { error.briefly() }
}
