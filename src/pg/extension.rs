//! The extension in this database: its OID, its members, and locks against DROP EXTENSION.

use super::error::ServerError;
use super::report::raise;
use pgrx::{IntoDatum, Spi, pg_sys};
use std::ffi::{CStr, CString, c_char};

/// Keeps an extension from being dropped until the transaction ends. This lock suffices, because DROP EXTENSION locks
/// the extension before it locks the members.
pub fn lock(extension: pg_sys::Oid) {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the caller is within a transaction; any OID can be locked.
    unsafe { pg_sys::LockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) };
}

/// Takes the same lock as [`lock`] if the lock is available without a wait. Returns whether the lock was taken.
pub fn lock_at_once(extension: pg_sys::Oid) -> bool {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the caller is within a transaction; any OID can be locked.
    unsafe { pg_sys::ConditionalLockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) }
}

/// Returns the OID of the extension in this database; None if it is not installed. Call only within a transaction.
pub fn find() -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction; the name is a constant.
    let extension = unsafe { pg_sys::get_extension_oid(c"snowflake_ids".as_ptr(), true) };
    (extension != pg_sys::InvalidOid).then_some(extension)
}

/// Locks the extension against a drop until the transaction ends. Returns whether the extension is installed.
pub fn keep() -> bool {
    let Some(extension) = find() else { return false };
    lock(extension);
    // During the wait for the lock, the extension may have been dropped and created again.
    find() == Some(extension)
}

/// Runs `work`, which runs code of users, and fails if this code dropped the extension. After a drop, the caller's next
/// statements might use objects that a user has created under the extension's names. [`keep`] prevents drops by other
/// sessions only. Call only within a transaction.
pub fn outlasting<T>(work: impl FnOnce() -> T) -> T {
    let before = find();
    let done = work();
    if find() != before {
        raise(ServerError::Dropped);
    }
    done
}

/// Returns the extension if the object is a member of it. Users may have other objects with the same name. Call only within
/// a transaction.
pub fn of_member(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction.
    let of = unsafe { pg_sys::getExtensionOfObject(catalog, object) };
    find().filter(|extension| *extension == of)
}

/// Returns the extension's function with this schema-qualified signature. Call only within a transaction.
pub fn function(signature: &str) -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction; the function takes text, and returns an OID or null.
    let found: Option<pg_sys::Oid> =
        unsafe { pgrx::direct_function_call(pg_sys::to_regprocedure, &[signature.into_datum()]) };
    found.filter(|function| of_member(pg_sys::ProcedureRelationId, *function).is_some())
}

/// Fails if columns use the type that is being dropped, and this type is the extension's `snowflake_id`. CASCADE would drop
/// these columns, and whole tables that are partitioned by such a column or by an expression of the type. CASCADE drops
/// columns before their type, so the query also sees columns that this statement has already dropped. Temporary tables of
/// other sessions do not count, because only those sessions can change them.
pub fn keep_columns_of(dropped: pg_sys::Oid) {
    if of_member(pg_sys::TypeRelationId, dropped).is_none() {
        return;
    }
    // Domains, arrays and ranges depend on the type. All names are qualified, because the caller's search_path is in effect.
    let sql = format!(
        "WITH RECURSIVE types (type) AS (SELECT t.oid FROM pg_catalog.pg_type AS t
                WHERE t.oid OPERATOR(pg_catalog.=) {dropped}::pg_catalog.oid AND t.typname OPERATOR(pg_catalog.=) 'snowflake_id'
            UNION SELECT d.objid
            FROM types AS t, pg_catalog.pg_depend AS d WHERE d.refobjid OPERATOR(pg_catalog.=) t.type
                AND d.refclassid OPERATOR(pg_catalog.=) {types} AND d.classid OPERATOR(pg_catalog.=) {types}),
        columns (name) AS (SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
                OPERATOR(pg_catalog.||) coalesce('.' OPERATOR(pg_catalog.||) pg_catalog.quote_ident(a.attname), ' (partition key)')
            FROM types AS t, pg_catalog.pg_depend AS d LEFT JOIN pg_catalog.pg_attribute AS a
                    ON a.attrelid OPERATOR(pg_catalog.=) d.objid AND a.attnum OPERATOR(pg_catalog.=) d.objsubid,
                pg_catalog.pg_class AS c, pg_catalog.pg_namespace AS n
            WHERE d.refobjid OPERATOR(pg_catalog.=) t.type AND d.refclassid OPERATOR(pg_catalog.=) {types}
                AND d.classid OPERATOR(pg_catalog.=) {relations} AND c.oid OPERATOR(pg_catalog.=) d.objid
                AND (a.attname IS NOT NULL OR c.relkind OPERATOR(pg_catalog.=) 'p')
                AND n.oid OPERATOR(pg_catalog.=) c.relnamespace AND NOT pg_catalog.pg_is_other_temp_schema(n.oid))
        SELECT pg_catalog.format('Columns of the type, %s in all: %s.', pg_catalog.count(*),
            pg_catalog.array_to_string((pg_catalog.array_agg(c.name ORDER BY c.name))[1:5], ', '))
        FROM columns AS c HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 0",
        dropped = dropped.to_u32(),
        types = format_args!("{}::pg_catalog.oid", pg_sys::TypeRelationId.to_u32()),
        relations = format_args!("{}::pg_catalog.oid", pg_sys::RelationRelationId.to_u32()),
    );
    // The command id is that of the statement's start, so the query still sees rows that this statement has deleted.
    // SAFETY: the caller is within a transaction.
    let began =
        unsafe { if pg_sys::ActiveSnapshotSet() { (*pg_sys::GetActiveSnapshot()).curcid } else { 0 } };
    if let Some(columns) = latest(sql, Some(began)) {
        raise(ServerError::TypeInUse { columns });
    }
}

/// Returns the text in the first column of the first row of a query on catalogs; None if there is no row. All names in the query
/// are qualified, because the caller's `search_path` is in effect. The query sees the latest commits, because DDL sees them too.
fn latest(sql: String, command: Option<pg_sys::CommandId>) -> Option<String> {
    let sql = CString::new(sql).unwrap_or_default();
    // SAFETY: the caller is within a transaction. An error aborts the transaction, and releases the pushed snapshot, which is a
    // copy of the latest one.
    unsafe {
        pg_sys::PushCopiedSnapshot(pg_sys::GetLatestSnapshot());
        if let Some(command) = command {
            (*pg_sys::GetActiveSnapshot()).curcid = command;
        }
        // `SPI_execute` is called directly, because pgrx would choose `read_only` itself. With a false `read_only`, SPI would
        // take another snapshot.
        let found = Spi::connect(|_| {
            pg_sys::SPI_execute(sql.as_ptr(), true, 1);
            (pg_sys::SPI_processed > 0).then(|| {
                let rows = pg_sys::SPI_tuptable;
                let value = pg_sys::SPI_getvalue(*(*rows).vals, (*rows).tupdesc, 1);
                CStr::from_ptr(value).to_string_lossy().into_owned()
            })
        });
        pg_sys::PopActiveSnapshot();
        found
    }
}

/// Makes a domain, a range type or a domain's constraint depend on the casts of `snowflake_id`, if it uses this type. Without these
/// rows of `pg_depend`, `pg_dump` for `pg_upgrade` would write the domain before the casts that the domain's default, its
/// constraints or the range's operator class need. The transaction sees the changes of the current statement.
pub fn record_casts(class: pg_sys::Oid, object: pg_sys::Oid) {
    if class == pg_sys::TypeRelationId {
        // SAFETY: the caller is within a transaction.
        let [kind] = unsafe { pg_sys::get_typtype(object) }.to_ne_bytes();
        // `pg_dump` writes arrays and multiranges together with the type that they are made of.
        if ![pg_sys::TYPTYPE_DOMAIN, pg_sys::TYPTYPE_RANGE].contains(&kind) {
            return;
        }
    }
    let Some(extension) = find() else { return };
    // The query follows all dependencies of the object: on the types that its type consists of, and on functions that its
    // expressions call. A composite type's columns are dependencies of its relation.
    let sql = format!(
        "WITH RECURSIVE used (class, object) AS (
            SELECT {class}::pg_catalog.oid, {object}::pg_catalog.oid
            UNION SELECT next.class, next.object FROM used AS u CROSS JOIN LATERAL (
                SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend AS d
                WHERE d.classid OPERATOR(pg_catalog.=) u.class AND d.objid OPERATOR(pg_catalog.=) u.object
                    AND d.deptype OPERATOR(pg_catalog.<>) 'e'
                UNION ALL SELECT {relations}, t.typrelid FROM pg_catalog.pg_type AS t
                WHERE u.class OPERATOR(pg_catalog.=) {types} AND t.oid OPERATOR(pg_catalog.=) u.object
                    AND t.typrelid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid) AS next (class, object))
        SELECT t.oid FROM used AS u, pg_catalog.pg_type AS t, pg_catalog.pg_depend AS d
        WHERE u.class OPERATOR(pg_catalog.=) {types} AND t.oid OPERATOR(pg_catalog.=) u.object
            AND t.typname OPERATOR(pg_catalog.=) 'snowflake_id' AND d.classid OPERATOR(pg_catalog.=) {types}
            AND d.objid OPERATOR(pg_catalog.=) t.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'
            AND d.refobjid OPERATOR(pg_catalog.=) {extension}::pg_catalog.oid",
        class = class.to_u32(),
        object = object.to_u32(),
        extension = extension.to_u32(),
        types = format_args!("{}::pg_catalog.oid", pg_sys::TypeRelationId.to_u32()),
        relations = format_args!("{}::pg_catalog.oid", pg_sys::RelationRelationId.to_u32()),
    );
    let Some(id) = latest(sql, None).and_then(|id| id.parse().ok()).map(pg_sys::Oid::from_u32) else {
        return;
    };
    let ids = [pg_sys::INT8OID, pg_sys::INT4OID, pg_sys::INT2OID].map(|number| (number, id));
    let this = pg_sys::ObjectAddress { classId: class, objectId: object, objectSubId: 0 };
    // SAFETY: the caller is within a transaction; the functions change and read catalogs only. Rows of earlier calls are replaced.
    unsafe {
        pg_sys::deleteDependencyRecordsForClass(class, object, pg_sys::CastRelationId, 'n' as c_char);
        for (from, to) in ids.into_iter().chain([(id, pg_sys::INT8OID)]) {
            let cast = pg_sys::get_cast_oid(from, to, true);
            if of_member(pg_sys::CastRelationId, cast).is_some() {
                let cast =
                    pg_sys::ObjectAddress { classId: pg_sys::CastRelationId, objectId: cast, objectSubId: 0 };
                pg_sys::recordDependencyOn(
                    &raw const this,
                    &raw const cast,
                    pg_sys::DependencyType::DEPENDENCY_NORMAL,
                );
            }
        }
    }
}
