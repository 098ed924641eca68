//! The trigger that fills a column with numbers of a series. To run fast, the trigger bypasses pgrx's trigger interface.

use crate::pg::report::{raise, report};
use crate::pg::tag_text;
use crate::pg::text::{bytes_of, length_of};
use crate::series;
use crate::sql::error::CallError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{FromDatum, IntoDatum, extension_sql, pg_guard, pg_sys};
use snowflake_ids_core::error::check_length;
use snowflake_ids_core::series::{Key, MAX_KEY_BYTES, SeriesError};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Fills the column before an INSERT. The trigger's arguments name the series, the column to fill and the column of the key.
/// If the row already has a number, the trigger raises the key's counter to at least this number.
#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn series_fill_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `trigger.rs` has checked that a trigger makes this call, so the context is the trigger's data. The relation
    // and the row live as long as the call.
    unsafe {
        let trigger = &*(*call).context.cast::<c_void>().cast::<pg_sys::TriggerData>();
        let Some([series, column, key_column]) = arguments(trigger) else { misused() };
        let row = trigger.tg_trigtuple;
        let table = CallingTable { relation: trigger.tg_relation, row, series };
        let owner = (*(*trigger.tg_relation).rd_rel).relowner;
        let column = table.column(column).unwrap_or_else(|error| raise(*error));
        let key = table.column(key_column).and_then(|column| table.key(&column));
        if table.value(&column).is_some() {
            // The row already has a number, which `table.key` reads like a bigint key. An invalid key is no error here,
            // because no number is taken.
            if let (Ok(Key::Bigint(number)), Ok(key)) = (table.key(&column), key) {
                let raised = series::raise_to(series.to_bytes(), &key, number, owner);
                raised.unwrap_or_else(|error| raise(error));
            }
            return row.into();
        }
        let key = key.unwrap_or_else(|error| raise(*error));
        let (cached, taken) =
            series::next(c"INSERT", series.to_bytes(), &key, owner).unwrap_or_else(|error| raise(error));
        let value = match column.of {
            pg_sys::INT8OID => taken.number.into_datum(),
            pg_sys::INT4OID => i32::try_from(taken.number).ok().and_then(IntoDatum::into_datum),
            pg_sys::INT2OID => i16::try_from(taken.number).ok().and_then(IntoDatum::into_datum),
            pg_sys::TEXTOID | pg_sys::VARCHAROID => {
                let text = cached.written(taken).unwrap_or_else(|report| raise(*report));
                let room =
                    usize::try_from(column.modifier).ok().map(|room| room.saturating_sub(pg_sys::VARHDRSZ));
                if room.is_some_and(|room| tag_text::chars(text.as_bytes()) > room) {
                    let (series, column) = (cached.shown(), column.shown());
                    let text = cached.series.write(taken.day, taken.number);
                    raise(report(SeriesError::LongText { series, text, column }));
                }
                text.into_datum()
            }
            _ => raise(report(SeriesError::ColumnType { series: cached.shown(), column: column.shown() })),
        };
        let value = value.unwrap_or_else(|| {
            let (series, column) = (cached.shown(), column.shown());
            raise(report(SeriesError::NoRoom { series, number: taken.number, column }))
        });
        let (mut number, mut value, mut is_null) = (c_int::from(column.number), value, false);
        pg_sys::heap_modify_tuple_by_cols(
            row,
            table.shape(),
            1,
            &raw mut number,
            &raw mut value,
            &raw mut is_null,
        )
        .into()
    }
}

/// Returns the trigger's three arguments; None if the trigger is not BEFORE INSERT FOR EACH ROW with three arguments.
///
/// # Safety
/// The server passes this struct to a trigger. The returned names are valid as long as the call runs.
unsafe fn arguments(trigger: &pg_sys::TriggerData) -> Option<[&CStr; 3]> {
    let event = trigger.tg_event;
    let is_insert = event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_INSERT;
    let is_before = event & pg_sys::TRIGGER_EVENT_TIMINGMASK == pg_sys::TRIGGER_EVENT_BEFORE;
    let is_of_row = event & pg_sys::TRIGGER_EVENT_ROW != 0;
    // SAFETY: the trigger has `tgnargs` arguments, each of which ends with a zero byte.
    unsafe {
        let of = &*trigger.tg_trigger;
        let name = |place: usize| CStr::from_ptr(of.tgargs.add(place).read());
        (is_insert && is_before && is_of_row && of.tgnargs == 3).then(|| [name(0), name(1), name(2)])
    }
}

#[cold]
fn misused() -> ! {
    raise(CallError::BadTrigger)
}

/// The row to insert, its table, and the name of the series.
struct CallingTable<'a> {
    relation: pg_sys::Relation,
    row: pg_sys::HeapTuple,
    series: &'a CStr,
}

/// A column of the table: the column to fill, or the column of the key.
struct KeyColumn<'a> {
    name: &'a CStr,
    number: i16,
    of: pg_sys::Oid,
    modifier: i32,
}

impl KeyColumn<'_> {
    fn shown(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }
}

impl CallingTable<'_> {
    fn shape(&self) -> pg_sys::TupleDesc {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_att }
    }

    /// Returns the column with this name. The trigger's arguments name columns, because a column's number may differ between
    /// a partition and its parent.
    fn column<'a>(&self, name: &'a CStr) -> Result<KeyColumn<'a>, Box<ErrorReport>> {
        let pointer: *const c_char = name.as_ptr();
        // SAFETY: the relation is open. Numbers above 0 belong to user columns.
        unsafe {
            let number = pg_sys::SPI_fnumber(self.shape(), pointer);
            if number <= 0 {
                let (series, column) = (self.shown(), name.to_string_lossy().into_owned());
                return Err(Box::new(report(SeriesError::NoColumn { series, column })));
            }
            let number = i16::try_from(number).unwrap_or_default();
            let (mut of, mut modifier, mut collation) = (pg_sys::InvalidOid, -1, pg_sys::InvalidOid);
            let table = (*self.relation).rd_id;
            pg_sys::get_atttypetypmodcoll(table, number, &raw mut of, &raw mut modifier, &raw mut collation);
            Ok(KeyColumn { name, number, of, modifier })
        }
    }

    /// Returns the row's value of a column; None if the value is null.
    fn value(&self, column: &KeyColumn<'_>) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the row belongs to the table, which has this column.
        let value =
            unsafe { pg_sys::heap_getattr(self.row, column.number.into(), self.shape(), &mut is_null) };
        (!is_null).then_some(value)
    }

    fn key(&self, column: &KeyColumn<'_>) -> Result<Key, Box<ErrorReport>> {
        let Some(value) = self.value(column) else {
            return Err(Box::new(report(SeriesError::NullKey { series: self.shown() })));
        };
        // SAFETY: the value is of the column's type, or of the base type of its domain. The length of a text is checked
        // before it is read.
        unsafe {
            match pg_sys::getBaseType(column.of) {
                pg_sys::INT8OID => i64::from_datum(value, false).map(Key::Bigint),
                pg_sys::INT4OID => i32::from_datum(value, false).map(|key| Key::Bigint(key.into())),
                pg_sys::INT2OID => i16::from_datum(value, false).map(|key| Key::Bigint(key.into())),
                pg_sys::UUIDOID => {
                    pgrx::Uuid::from_datum(value, false).map(|key| Key::Uuid(u128::from_be_bytes(*key)))
                }
                pg_sys::TEXTOID | pg_sys::VARCHAROID => {
                    let checked = check_length("key", length_of(value), MAX_KEY_BYTES);
                    let key = checked.and_then(|()| Key::text(bytes_of(value)));
                    Some(key.map_err(report)?)
                }
                // For example, the type snowflake_id.
                of if pg_sys::IsBinaryCoercible(of, pg_sys::INT8OID) => {
                    i64::from_datum(value, false).map(Key::Bigint)
                }
                _ => None,
            }
        }
        .ok_or_else(|| {
            Box::new(report(SeriesError::ColumnType { series: self.shown(), column: column.shown() }))
        })
    }

    fn shown(&self) -> String {
        self.series.to_string_lossy().into_owned()
    }
}

extension_sql!(
    "
CREATE FUNCTION snowflake_ids_internal.series_fill() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'series_fill_trigger';
",
    name = "series_fill",
    requires = ["segments"]
);
