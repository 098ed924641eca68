//! A look at rows of the extension's tables as the server looks at its catalogs: with what is committed by now, without
//! SQL, and without rights on them. It leaves no lock behind, as a call's transaction may go on for long.

use super::catalog::Source;
use super::tag::TagText;
use super::text::bytes_of;
use pgrx::{FromDatum, IntoDatum, PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::ffi::CStr;
use std::time::Duration;

/// Whether a table has a row in which these columns, which its primary key begins with or is, say this. None where that
/// can't be found out without waiting: the table is locked against readers, or has no such key. Only within a
/// transaction, of which it sees more than that does: all that is committed by now.
pub fn has(table: Source, columns: &[(&CStr, TagText)]) -> Option<bool> {
    let mut found = false;
    let columns: Vec<_> = columns.iter().map(|(name, text)| (*name, Sought::Text(text))).collect();
    look(table, Wait::No, &columns, |_| found = true).ok().map(|()| found)
}

/// What a column of text says in all rows; None as above.
pub fn texts(table: Source, column: &CStr) -> Option<Vec<TagText>> {
    let mut texts = Vec::new();
    look(table, Wait::No, &[], |row| texts.extend(row.tag(column))).ok().map(|()| texts)
}

/// Calls `each` with every row of a table. Where the table is locked it `waits` for as long as any statement does, or not at
/// all. Only within a transaction, as above.
pub fn each(table: Source, waits: bool, each: impl FnMut(&Row<'_>)) -> Result<(), Unseen> {
    look(table, if waits { Wait::Yes(None) } else { Wait::No }, &[], each)
}

/// Why a table was not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// There is no such table, or it has no such key.
    NoTable,
    /// It was locked for longer than it was to be waited for. The transaction can only be rolled back now.
    Locked,
}

/// Calls `each` with every row of a table whose column `tag`, which its primary key begins with or is, says this. Waits
/// where the table is locked: for so long, or, where no time is given, for as long as any statement does. Only within a
/// transaction, as above.
pub fn of_tag(
    table: Source,
    tag: &TagText,
    limit: Option<Duration>,
    each: impl FnMut(&Row<'_>),
) -> Result<(), Unseen> {
    look(table, Wait::Yes(limit), &[(c"tag", Sought::Text(tag))], each)
}

/// Calls `each` with every row of a table whose column, which its primary key is, says this. Waits where the table is locked, as
/// any statement does. Only within a transaction, as above.
pub fn of_key(table: Source, column: &CStr, key: &TagText, each: impl FnMut(&Row<'_>)) -> Result<(), Unseen> {
    look(table, Wait::Yes(None), &[(column, Sought::Text(key))], each)
}

/// The same for a column of bigints that the primary key begins with or is.
pub fn of_number(
    table: Source,
    column: &CStr,
    number: i64,
    each: impl FnMut(&Row<'_>),
) -> Result<(), Unseen> {
    look(table, Wait::Yes(None), &[(column, Sought::Number(number))], each)
}

/// What a column is to say.
#[derive(Clone, Copy)]
enum Sought<'a> {
    Text(&'a TagText),
    Number(i64),
}

impl Sought<'_> {
    /// As the server has it, with the function that compares.
    fn datum(self) -> Option<(pg_sys::Datum, u32)> {
        match self {
            Self::Text(text) => (*text).into_datum().map(|text| (text, pg_sys::F_TEXTEQ)),
            Self::Number(number) => Some((number.into(), pg_sys::F_INT8EQ)),
        }
    }
}

/// A row that is looked at.
pub struct Row<'a> {
    table: &'a Table,
    tuple: pg_sys::HeapTuple,
}

impl Row<'_> {
    /// A column of text, of a tag's length at most; None where it is null, or longer.
    pub fn tag(&self, column: &CStr) -> Option<TagText> {
        let datum = self.value(column)?;
        // SAFETY: the callers ask for texts.
        unsafe { TagText::from_polymorphic_datum(datum, false, pg_sys::TEXTOID) }
    }

    /// A column of text; None where it is null.
    pub fn text(&self, column: &CStr) -> Option<String> {
        // SAFETY: the callers ask for texts.
        self.value(column).map(|text| String::from_utf8_lossy(unsafe { bytes_of(text) }).into_owned())
    }

    /// A column that is a name; None where it is null.
    pub fn name(&self, column: &CStr) -> Option<String> {
        // SAFETY: the callers ask for names, which end with a zero byte.
        self.value(column)
            .map(|name| unsafe { CStr::from_ptr(name.cast_mut_ptr()) }.to_string_lossy().into_owned())
    }

    /// A column that is a bigint; None where it is null.
    pub fn number(&self, column: &CStr) -> Option<i64> {
        // SAFETY: the callers ask for bigints.
        self.value(column).and_then(|number| unsafe { i64::from_datum(number, false) })
    }

    /// A column that is a boolean; None where it is null.
    pub fn boolean(&self, column: &CStr) -> Option<bool> {
        // SAFETY: the callers ask for booleans.
        self.value(column).and_then(|value| unsafe { bool::from_datum(value, false) })
    }

    /// Whether a column is null.
    pub fn is_null(&self, column: &CStr) -> bool {
        self.value(column).is_none()
    }

    /// A column that is an oid; None where it is null.
    pub fn oid(&self, column: &CStr) -> Option<pg_sys::Oid> {
        // SAFETY: the callers ask for oids.
        self.value(column).and_then(|oid| unsafe { pg_sys::Oid::from_datum(oid, false) })
    }

    /// A column that is an integer; None where it is null.
    pub fn int(&self, column: &CStr) -> Option<i32> {
        // SAFETY: the callers ask for integers.
        self.value(column).and_then(|number| unsafe { i32::from_datum(number, false) })
    }

    fn value(&self, column: &CStr) -> Option<pg_sys::Datum> {
        let number = self.table.column(column)?;
        let mut is_null = false;
        // SAFETY: the row is one of the table's, which has this column, and there while it is looked at.
        let value = unsafe {
            pg_sys::heap_getattr(self.tuple, number.into(), (*self.table.relation).rd_att, &mut is_null)
        };
        (!is_null).then_some(value)
    }
}

fn look(
    table: Source,
    wait: Wait,
    columns: &[(&CStr, Sought<'_>)],
    each: impl FnMut(&Row<'_>),
) -> Result<(), Unseen> {
    let table = Table::open(table, wait)?;
    let found = table.look(wait, columns, each);
    table.close();
    found
}

/// What to do about a lock that is not to be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    No,
    /// As long as this, if it is bounded.
    Yes(Option<Duration>),
}

/// A lock for reading. After an error the end of the transaction, or subtransaction, releases it.
struct Lock(pg_sys::Oid);

const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock.cast_signed();

impl Lock {
    fn take(relation: pg_sys::Oid, wait: Wait) -> Result<Self, Unseen> {
        // SAFETY: within a transaction; the lock is of a number, whatever that is.
        let at_once = || unsafe { pg_sys::ConditionalLockRelationOid(relation, MODE) };
        // SAFETY: as above.
        let in_the_end = || unsafe { pg_sys::LockRelationOid(relation, MODE) };
        let taken = match wait {
            Wait::No => at_once(),
            Wait::Yes(None) => {
                in_the_end();
                true
            }
            Wait::Yes(Some(limit)) => at_once() || within(limit, in_the_end),
        };
        if taken { Ok(Self(relation)) } else { Err(Unseen::Locked) }
    }

    fn release(self) {
        // SAFETY: taken above, once.
        unsafe { pg_sys::UnlockRelationOid(self.0, MODE) };
    }
}

/// Waits for a lock no longer than this; whether it was to be had. The user's own `lock_timeout` holds where it is shorter.
fn within(limit: Duration, wait: impl Fn() + std::panic::UnwindSafe + std::panic::RefUnwindSafe) -> bool {
    let ours = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: a plain variable of this process, which the server reads when it begins to wait.
    let theirs = unsafe { pg_sys::LockTimeout };
    // SAFETY: as above.
    let set = |timeout| unsafe { pg_sys::LockTimeout = timeout };
    if theirs > 0 && theirs <= ours {
        wait();
        return true;
    }
    set(ours);
    PgTryBuilder::new(|| {
        wait();
        true
    })
    .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| false)
    .finally(move || set(theirs))
    .execute()
}

struct Table {
    relation: pg_sys::Relation,
    lock: Lock,
}

impl Table {
    fn open(table: Source, wait: Wait) -> Result<Self, Unseen> {
        let lock = Lock::take(table.oid(), wait)?;
        // SAFETY: the lock is there already; null where the table is not.
        let relation = unsafe { pg_sys::try_relation_open(table.oid(), pg_sys::NoLock.cast_signed()) };
        if relation.is_null() {
            lock.release();
            return Err(Unseen::NoTable);
        }
        Ok(Self { relation, lock })
    }

    fn close(self) {
        // SAFETY: opened above, once.
        unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock.cast_signed()) };
        self.lock.release();
    }

    /// Looks at the rows that these columns fit, by the primary key; at all rows where there are none.
    fn look(
        &self,
        wait: Wait,
        columns: &[(&CStr, Sought<'_>)],
        each: impl FnMut(&Row<'_>),
    ) -> Result<(), Unseen> {
        if columns.is_empty() {
            self.scan(pg_sys::InvalidOid, Vec::new(), each);
            return Ok(());
        }
        let index = self.primary_key().ok_or(Unseen::NoTable)?;
        let keys = columns.iter().map(|(name, sought)| self.key(name, *sought)).collect::<Option<Vec<_>>>();
        let keys = keys.ok_or(Unseen::NoTable)?;
        let lock = Lock::take(index, wait)?;
        self.scan(index, keys, each);
        lock.release();
        Ok(())
    }

    /// The index of the primary key.
    fn primary_key(&self) -> Option<pg_sys::Oid> {
        // SAFETY: the table is open. Its list of indexes, when it was made, says which one that is.
        let key = unsafe {
            pg_sys::list_free(pg_sys::RelationGetIndexList(self.relation));
            (*self.relation).rd_pkindex
        };
        (key != pg_sys::InvalidOid).then_some(key)
    }

    fn column(&self, name: &CStr) -> Option<i16> {
        // SAFETY: the table is open; the name ends with a zero byte.
        let number = unsafe { pg_sys::get_attnum((*self.relation).rd_id, name.as_ptr()) };
        (number > 0).then_some(number)
    }

    /// That a column says this.
    fn key(&self, column: &CStr, sought: Sought<'_>) -> Option<pg_sys::ScanKeyData> {
        let (number, (value, equal)) = (self.column(column)?, sought.datum()?);
        let strategy = u16::try_from(pg_sys::BTEqualStrategyNumber).ok()?;
        let mut key = pg_sys::ScanKeyData::default();
        let (mut kind, mut typmod, mut collation) = (pg_sys::InvalidOid, 0, pg_sys::InvalidOid);
        // SAFETY: the table is open, and has this column. The key's fields are written; what it
        // compares with lives as long as the call.
        unsafe {
            let table = (*self.relation).rd_id;
            pg_sys::get_atttypetypmodcoll(table, number, &raw mut kind, &raw mut typmod, &raw mut collation);
            pg_sys::ScanKeyEntryInitialize(
                &raw mut key,
                0,
                number,
                strategy,
                pg_sys::InvalidOid,
                collation,
                equal.into(),
                value,
            );
        }
        Some(key)
    }

    /// Has all rows looked at that the keys fit, by the index, if one is given. Without a snapshot of the session's: the
    /// server takes the newest, which it does in parallel queries, too.
    fn scan(&self, index: pg_sys::Oid, mut keys: Vec<pg_sys::ScanKeyData>, mut each: impl FnMut(&Row<'_>)) {
        let count = i32::try_from(keys.len()).unwrap_or(0);
        let (by_index, newest) = (index != pg_sys::InvalidOid, std::ptr::null_mut());
        // SAFETY: the table is open, and the index, if any, is its own and locked. The keys are kept until the scan is over.
        unsafe {
            let scan =
                pg_sys::systable_beginscan(self.relation, index, by_index, newest, count, keys.as_mut_ptr());
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                each(&Row { table: self, tuple });
            }
            pg_sys::systable_endscan(scan);
        }
    }
}
