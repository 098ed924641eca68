//! A column of integers of some table, and its rows in the order of these integers, read through a cursor.
//!
//! Code that comes with the table (what an index computes, a foreign table's server, whatever says of itself that it is
//! immutable) is its owner's, and a superuser may be reading. So it is read with the rights of the table's owner where the
//! caller could become that role, and with the caller's own where not: never with more than either has. The caller must
//! have the right to read in any case. Policies of row security are never run: one that would hide rows is an error.

use super::encoding::{legible, to_utf8};
use super::extension;
use super::relation::Relation;
use super::role::{self, Settings};
use crate::pg::guc;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode as Code, check_for_interrupts, function_name, pg_sys};
use std::ffi::{CStr, CString, c_long};
use std::ptr;

/// What came of something, or the report of why nothing did.
type Checked<T> = Result<T, Box<ErrorReport>>;

/// So many rows are read at a time.
const BATCH: c_long = 10_000;

/// A column of integers that the current role may read, of a table that is locked against changes of what it is.
pub struct Column {
    table: pg_sys::Oid,
    attribute: i16,
    schema_name: CString,
    table_name: CString,
    name: CString,
    reader: Reader,
    /// Whether rows can be asked for the table that they are in, a partition say.
    sees_tables: bool,
}

/// With whose rights it is read.
#[derive(Clone, Copy)]
struct Reader {
    role: pg_sys::Oid,
    all_rows: bool,
}

impl Reader {
    fn of(table: &Relation) -> Self {
        let owner = table.owner();
        if role::has_privileges_of(owner) && role::can_become(owner) {
            Self { role: owner, all_rows: role::bypasses_row_security() }
        } else {
            Self { role: role::current(), all_rows: false }
        }
    }

    fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let set_and_work = || {
            guc::set_for_now(c"row_security", c"off");
            // All rows are wanted, not the first ones soon.
            guc::set_for_now(c"cursor_tuple_fraction", c"1");
            guc::set_for_now(c"standard_conforming_strings", c"on");
            guc::set_for_now(c"quote_all_identifiers", c"off");
            work()
        };
        extension::outlasting(|| role::with_rights(self.role, self.all_rows, Settings::End, set_and_work))
    }
}

impl Column {
    /// Finds a column of a table, and locks the table against all that would change what it is until the transaction ends.
    /// Only within a transaction.
    ///
    /// # Errors
    /// There is no such column; it is not one of integers, or not of a table; the current role may not read it.
    pub fn find(table: pg_sys::Oid, name: &CStr) -> Checked<Self> {
        // Nobody who may not read it can lock it;
        Self::look(table, name)?;
        // SAFETY: within a transaction, at whose end the lock goes.
        unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessShareLock.cast_signed()) };
        // and while the lock was waited for all of it may have changed.
        Self::look(table, name)
    }

    fn look(table: pg_sys::Oid, name: &CStr) -> Checked<Self> {
        let relation = Relation::find(table).ok_or_else(|| {
            error(
                Code::ERRCODE_UNDEFINED_TABLE,
                &format!("relation with OID {} does not exist", table.to_u32()),
            )
        })?;
        // SAFETY: within a transaction. What is found is copied.
        let (schema_name, table_name, attribute) = unsafe {
            let schema = copied(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table)));
            (schema, copied(pg_sys::get_rel_name(table)), pg_sys::get_attnum(table, name.as_ptr()))
        };
        let found = Self {
            table,
            attribute,
            schema_name,
            table_name,
            name: name.to_owned(),
            reader: Reader::of(&relation),
            sees_tables: relation.is_readable(),
        };
        found.check()?;
        Ok(found)
    }

    fn check(&self) -> Checked<()> {
        let shown = self.shown();
        let name = legible(&self.name.to_string_lossy());
        // SAFETY: within a transaction.
        let kind = unsafe { pg_sys::get_rel_relkind(self.table) }.to_ne_bytes();
        if ![[pg_sys::RELKIND_RELATION], [pg_sys::RELKIND_PARTITIONED_TABLE], [pg_sys::RELKIND_FOREIGN_TABLE]]
            .contains(&kind)
        {
            let report = error(Code::ERRCODE_WRONG_OBJECT_TYPE, &format!("\"{shown}\" is not a table"));
            return Err(Box::new(
                report
                    .set_detail(
                        "Ordinary, partitioned and foreign tables can be read in the order of their ids.",
                    )
                    .set_hint("Name the table that has the rows."),
            ));
        }
        if self.attribute <= 0 {
            let message = format!("column \"{name}\" of relation \"{shown}\" does not exist");
            return Err(Box::new(error(Code::ERRCODE_UNDEFINED_COLUMN, &message)));
        }
        // SAFETY: as above; the table has this column.
        let is_readable = self.sees_tables
            || unsafe {
                let select = pg_sys::AclMode::from(pg_sys::ACL_SELECT);
                let allowed =
                    pg_sys::pg_attribute_aclcheck(self.table, self.attribute, role::current(), select);
                allowed == pg_sys::AclResult::ACLCHECK_OK
            };
        if !is_readable {
            let message = format!("permission denied for table {shown}");
            return Err(Box::new(
                error(Code::ERRCODE_INSUFFICIENT_PRIVILEGE, &message)
                    .set_detail(format!("To read column \"{name}\" takes the privilege SELECT."))
                    .set_hint("Ask the owner of the table to grant it."),
            ));
        }
        // SAFETY: as above.
        let of = unsafe { pg_sys::get_atttype(self.table, self.attribute) };
        // SAFETY: as above. Of a domain it is what that is made of.
        if ![pg_sys::INT8OID, pg_sys::INT4OID, pg_sys::INT2OID].contains(&unsafe { pg_sys::getBaseType(of) })
        {
            // SAFETY: as above; the text is copied.
            let of = legible(&unsafe { copied(pg_sys::format_type_be(of)) }.to_string_lossy());
            let message = format!("column \"{name}\" of relation \"{shown}\" is of type {of}");
            return Err(Box::new(
                error(Code::ERRCODE_DATATYPE_MISMATCH, &message)
                    .set_detail("Ids are bigint, integer or smallint.")
                    .set_hint("Name a column of such ids."),
            ));
        }
        Ok(())
    }

    /// The table, with its schema, quoted where that is needed.
    pub fn shown(&self) -> String {
        table_name(self.table).unwrap_or_default()
    }

    /// The names of schema, table and column, in UTF-8.
    pub fn names(&self) -> [String; 3] {
        let utf8 = |name: &CStr| to_utf8(name.to_bytes()).unwrap_or_default();
        [utf8(&self.schema_name), utf8(&self.table_name), utf8(&self.name)]
    }

    /// The table.
    pub fn table(&self) -> pg_sys::Oid {
        self.table
    }

    /// How many rows the table and those below it have, as the server last found; None where it never looked.
    pub fn estimated_rows(&self) -> Checked<Option<u64>> {
        const SQL: &str = "WITH RECURSIVE below (relation) AS (
                SELECT $1 UNION
                SELECT i.inhrelid FROM below AS b JOIN pg_catalog.pg_inherits AS i ON i.inhparent = b.relation
            )
            SELECT CASE WHEN pg_catalog.min(c.reltuples) >= 0 THEN pg_catalog.sum(c.reltuples)::pg_catalog.int8 END
            FROM below AS b JOIN pg_catalog.pg_class AS c ON c.oid = b.relation WHERE c.relkind <> 'p'";
        // Without a transaction id, which a standby gives none of.
        let read = || {
            Spi::connect(|client| client.select(SQL, Some(1), &[self.table.into()])?.first().get_one::<i64>())
        };
        let found = self.reader.run(read).map_err(|error| Box::new(super::report::spi(&error)))?;
        Ok(found.and_then(|rows| u64::try_from(rows).ok()))
    }

    /// The expression of its default, all names in it qualified but those of `pg_catalog`. None where it has none, or one
    /// that is longer than `most` bytes.
    pub fn default_expression(&self, most: i32) -> Checked<Option<Vec<u8>>> {
        const SQL: &str = "SELECT e.expression::pg_catalog.text FROM (
                SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS expression
                FROM pg_catalog.pg_attrdef AS d WHERE d.adrelid = $1 AND d.adnum = $2
            ) AS e WHERE pg_catalog.octet_length(e.expression) <= $3";
        let arguments = [self.table.into(), self.attribute.into(), most.into()];
        let read = || {
            Spi::connect(|client| {
                let rows = client.select(SQL, Some(1), &arguments)?;
                rows.into_iter().next().map_or(Ok(None), |row| row.get::<TagBytes>(1))
            })
        };
        let found = self.reader.run(read).map_err(|error| Box::new(super::report::spi(&error)))?;
        Ok(found.map(|TagBytes(bytes)| bytes))
    }

    /// Begins to read all rows. Only within a transaction, to whose end it is open unless it is closed before.
    pub fn open(&self) -> Cursor {
        let sql = self.statement();
        // Scrolling back would keep all rows.
        let options = pg_sys::CURSOR_OPT_NO_SCROLL.cast_signed();
        let portal = self.reader.run(|| {
            Spi::connect(|_client| {
                let (nothing, no_values, no_nulls) = (ptr::null_mut(), ptr::null_mut(), ptr::null());
                // SAFETY: connected to SPI, a statement that ends with a zero byte, no arguments. What comes back is
                // there until it is dropped; pinned, no statement can drop it but the end of the transaction.
                unsafe {
                    let sql = sql.as_ptr();
                    let portal = pg_sys::SPI_cursor_open_with_args(
                        ptr::null(),
                        sql,
                        0,
                        nothing,
                        no_values,
                        no_nulls,
                        true,
                        options,
                    );
                    pg_sys::PinPortal(portal);
                    portal
                }
            })
        });
        Cursor { portal, reader: self.reader }
    }

    /// The statement that reads it. The name of the table stays its own while it is locked.
    fn statement(&self) -> CString {
        // SAFETY: names that end with zero bytes; what comes back does, too, and is copied.
        let (table, column) = unsafe {
            let table =
                pg_sys::quote_qualified_identifier(self.schema_name.as_ptr(), self.table_name.as_ptr());
            (copied(table), copied(pg_sys::quote_identifier(self.name.as_ptr())))
        };
        let place: &[u8] = if self.sees_tables { b"x.tableoid" } else { b"0::pg_catalog.oid" };
        let (table, column) = (table.as_bytes(), column.as_bytes());
        let sql: [&[u8]; 8] = [
            b"SELECT x.",
            column,
            b"::pg_catalog.int8, ",
            place,
            b" FROM ",
            table,
            b" AS x ORDER BY x.",
            column,
        ];
        CString::new(sql.concat()).unwrap_or_default()
    }
}

/// A text as the bytes that it is.
struct TagBytes(Vec<u8>);

impl FromDatum for TagBytes {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: asked for of texts only.
        (!is_null).then(|| Self(unsafe { super::text::bytes_of(datum) }.to_vec()))
    }
}

impl IntoDatum for TagBytes {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        None
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

/// The rows of a column that are not read yet.
pub struct Cursor {
    portal: pg_sys::Portal,
    reader: Reader,
}

impl Cursor {
    /// Reads the next rows: calls `each` with the integer and the oid of the table it is in, 0 where that is not known.
    /// Gives whether there were any. An interrupt ends it by the error that it throws.
    pub fn read(&mut self, mut each: impl FnMut(Option<i64>, u32)) -> bool {
        check_for_interrupts!();
        let portal = self.portal;
        self.reader.run(|| {
            // What was read is let go at the end of this.
            Spi::connect(|_client| {
                // SAFETY: connected to SPI. The portal is pinned, and there until the transaction ends; its rows have a
                // bigint and an oid.
                unsafe {
                    pg_sys::SPI_cursor_fetch(portal, true, BATCH);
                    let (rows, count) = (pg_sys::SPI_tuptable, pg_sys::SPI_processed);
                    if rows.is_null() {
                        return false;
                    }
                    let (rows, columns) = ((*rows).vals, (*rows).tupdesc);
                    let count = usize::try_from(count).unwrap_or(0);
                    for row in 0..count {
                        let row = *rows.add(row);
                        let (mut no_id, mut no_table) = (false, false);
                        let id = pg_sys::SPI_getbinval(row, columns, 1, &raw mut no_id);
                        let table = pg_sys::SPI_getbinval(row, columns, 2, &raw mut no_table);
                        let table = pg_sys::Oid::from_datum(table, no_table).unwrap_or_default();
                        each(i64::from_datum(id, no_id), table.to_u32());
                    }
                    count > 0
                }
            })
        })
    }

    /// Ends it before the transaction does.
    pub fn close(self) {
        let portal = self.portal;
        // SAFETY: as above, pinned once.
        self.reader.run(|| unsafe {
            pg_sys::UnpinPortal(portal);
            pg_sys::SPI_cursor_close(portal);
        });
    }
}

/// The name of a table for people, with its schema, quoted where that is needed; None where there is none. Only within a
/// transaction.
pub fn table_name(table: pg_sys::Oid) -> Option<String> {
    // SAFETY: as above. What is found is copied.
    let name = unsafe {
        let name = pg_sys::get_rel_name(table);
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
        if name.is_null() || schema.is_null() {
            return None;
        }
        copied(pg_sys::quote_qualified_identifier(schema, name))
    };
    to_utf8(name.as_bytes())
}

/// # Safety
/// Null, or a text that ends with a zero byte.
unsafe fn copied(text: *const std::ffi::c_char) -> CString {
    // SAFETY: as above.
    if text.is_null() { CString::default() } else { unsafe { CStr::from_ptr(text) }.to_owned() }
}

#[cold]
fn error(code: Code, message: &str) -> ErrorReport {
    ErrorReport::new(code, legible(message), function_name!())
}
