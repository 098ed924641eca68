//! The databases of the test, their contents, and the generations of their tags.

use super::generations::Generations;
use anyhow::Result;
use postgres::{Client, Config, NoTls};
use snowflake_ids_server_tests::Server;
use std::sync::atomic::AtomicUsize;

/// Tags whose ids are collected, in the order of [`Database::generations`]: the tag of a table that keeps all rows, a tag that is
/// dropped and set back, an attached table's tag, and a dated tag.
pub const TAGS: [&str; 4] = ["t", "u", "public.a", "d"];
pub const T: usize = 0;
pub const U: usize = 1;
pub const A: usize = 2;
pub const D: usize = 3;

/// The indexes of all tags.
pub const ALL: [usize; TAGS.len()] = [T, U, A, D];

/// The contents of the template for all databases. A repeated row in a table is an error, even across generations of a tag.
pub const CONTENTS: &str = "create extension snowflake_ids;
    select snowflake_ids.segment_create('t', step => 5, max_step => 50);
    select snowflake_ids.segment_create('u', step => 2, max_step => 20);
    select snowflake_ids.segment_create('d', reset => 'day', step => 10);
    create table t (id bigint primary key default segment_nextval('t'), note text);
    create table s (id bigint primary key default snowflake_nextval(), note text);
    create table a (id bigserial primary key, note text);
    insert into a (note) select 'serial' from generate_series(1, 20);
    select snowflake_ids.attach('a', 'id', kind => 'segment')";

/// Restores the contents after the extension was dropped.
pub const AGAIN: &str = "truncate t, s, a;
    create extension snowflake_ids;
    select snowflake_ids.segment_create('t', step => 5, max_step => 50);
    select snowflake_ids.segment_create('u', step => 2, max_step => 20);
    select snowflake_ids.segment_create('d', reset => 'day', step => 10);
    alter table t alter id set default segment_nextval('t');
    alter table s alter id set default snowflake_nextval();
    select snowflake_ids.attach('a', 'id', kind => 'segment')";

/// The scope of ids that may repeat.
pub const UNSURE: usize = usize::MAX;

/// A database in which sessions take ids.
#[derive(Debug)]
pub struct Database {
    pub number: usize,
    pub name: String,
    pub generations: [Generations; TAGS.len()],
    /// The scope within which the database's ids may not repeat. A scope may belong to one database or to several. During changes
    /// the scope is [`UNSURE`].
    pub scope: AtomicUsize,
    /// The number of changes of the scope. During one call, the scope may change and change back.
    pub scope_changes: AtomicUsize,
    config: Config,
}

impl Database {
    pub fn new(number: usize, name: &str, server: &Server) -> Self {
        let mut config = server.config(name);
        // Sessions wait only briefly for locks and ids.
        config.options("-c lock_timeout=2s -c statement_timeout=0 -c snowflake_ids.segment_wait_timeout=2s -c client_min_messages=warning");
        let (name, scope) = (name.to_owned(), AtomicUsize::new(number));
        Self {
            number,
            name,
            generations: Default::default(),
            scope,
            scope_changes: AtomicUsize::new(0),
            config,
        }
    }

    /// Declares that new generations of these tags may begin at any moment.
    pub fn open(&self, tags: &[usize]) {
        for tag in tags {
            self.generations[*tag].open();
        }
    }

    /// Declares that the new generations have begun.
    pub fn confirm(&self, tags: &[usize]) {
        for tag in tags {
            self.generations[*tag].confirm();
        }
    }

    /// Declares that the new generations have not begun, and will not begin.
    pub fn retract(&self, tags: &[usize]) {
        for tag in tags {
            self.generations[*tag].retract();
        }
    }

    /// Opens a session as a user does.
    pub fn connect(&self) -> Result<Client, postgres::Error> {
        self.config.connect(NoTls)
    }
}
