//! The rows of the table of this database.

use crate::pg::column::{Column, Cursor};
use crate::progress;
use snowflake_ids_core::audit::Stored;
use snowflake_ids_core::progress::Command;
use std::collections::VecDeque;

/// Rows that are not looked at yet.
pub struct Local {
    /// None after the last.
    cursor: Option<Cursor>,
    read: VecDeque<Stored>,
}

impl Local {
    /// Begins to read a column.
    pub fn open(column: &Column) -> Self {
        Self { cursor: Some(column.open()), read: VecDeque::new() }
    }

    /// The next row. Errors are the server's, and thrown.
    pub fn next(&mut self) -> Option<Stored> {
        if self.read.is_empty()
            && let Some(mut cursor) = self.cursor.take()
        {
            let read = &mut self.read;
            if cursor.read(|id, table| read.push_back(Stored { id, table })) {
                self.cursor = Some(cursor);
                progress::add_rows(Command::Audit, read.len());
            } else {
                cursor.close();
            }
        }
        self.read.pop_front()
    }
}
