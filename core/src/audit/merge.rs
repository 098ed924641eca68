//! Several sources of ascending ids in one order.

use super::group::Place;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The id; None where it is null.
    pub id: Option<i64>,
    /// In which of the source's tables it is: any number.
    pub table: u32,
}

/// Rows in the order of their ids, nulls last.
pub trait Source {
    /// Why it failed.
    type Error;

    /// The next row; None after the last.
    ///
    /// # Errors
    /// It can't be read.
    fn next(&mut self) -> Result<Option<Stored>, Self::Error>;
}

/// A source whose ids do not ascend: what comes of it cannot be told from what is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsorted {
    /// Which one.
    pub source: usize,
    /// The id that came,
    pub id: Option<i64>,
    /// and the one before.
    pub before: Option<i64>,
}

/// Why an audit came to no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditError<E> {
    /// A source failed.
    Source(E),
    /// A source did not keep the order.
    Unsorted(Unsorted),
}

/// The order of ids: nulls are last.
type Key = (bool, Option<i64>);

const fn key(id: Option<i64>) -> Key {
    (id.is_none(), id)
}

/// A row, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The id; None where it is null.
    pub id: Option<i64>,
    /// Where.
    pub place: Place,
}

/// The sources, and the next row of each that has one.
pub struct Merge<S> {
    sources: Vec<S>,
    next: BinaryHeap<Reverse<(Key, usize, u32)>>,
}

impl<S: Source> Merge<S> {
    /// Reads the first row of each.
    ///
    /// # Errors
    /// Those of the sources.
    pub fn begin(sources: Vec<S>) -> Result<Self, AuditError<S::Error>> {
        let mut next = BinaryHeap::with_capacity(sources.len());
        let mut sources = sources;
        for (index, source) in sources.iter_mut().enumerate() {
            if let Some(Stored { id, table }) = source.next().map_err(AuditError::Source)? {
                next.push(Reverse((key(id), index, table)));
            }
        }
        Ok(Self { sources, next })
    }

    /// The row with the lowest id of all that are left.
    ///
    /// # Errors
    /// Those of the sources; one of them does not keep the order.
    pub fn lowest(&mut self) -> Result<Option<Row>, AuditError<S::Error>> {
        let Some(mut lowest) = self.next.peek_mut() else { return Ok(None) };
        let Reverse((before, source, table)) = *lowest;
        let place = Place { source, table };
        let row = self.sources[source].next().map_err(AuditError::Source)?;
        match row {
            Some(Stored { id, table }) if key(id) >= before => *lowest = Reverse((key(id), source, table)),
            Some(Stored { id, .. }) => {
                return Err(AuditError::Unsorted(Unsorted { source, id, before: before.1 }));
            }
            None => {
                std::collections::binary_heap::PeekMut::pop(lowest);
            }
        }
        Ok(Some(Row { id: before.1, place }))
    }
}
