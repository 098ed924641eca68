//! The databases in which it all happens: what is in one, and what is known of its tags.

use super::lives::Lives;
use anyhow::Result;
use postgres::{Client, Config, NoTls};
use snowflake_ids_server_tests::Server;
use std::sync::atomic::AtomicUsize;

/// Tags whose ids are collected, in the order of [`Database::lives`]: of a table that keeps all its rows, one that is dropped
/// and set back, that of an attached table, a dated one.
pub const TAGS: [&str; 4] = ["t", "u", "public.a", "d"];
pub const T: usize = 0;
pub const U: usize = 1;
pub const A: usize = 2;
pub const D: usize = 3;

/// All of them.
pub const ALL: [usize; TAGS.len()] = [T, U, A, D];

/// The template of all databases. A row of a table that comes twice is an error, however lives began.
pub const CONTENTS: &str = "create extension snowflake_ids;
    select snowflake_ids.segment_create('t', step => 5, max_step => 50);
    select snowflake_ids.segment_create('u', step => 2, max_step => 20);
    select snowflake_ids.segment_create('d', reset => 'day', step => 10);
    create table t (id bigint primary key default segment_nextval('t'), note text);
    create table s (id bigint primary key default snowflake_nextval(), note text);
    create table a (id bigserial primary key, note text);
    insert into a (note) select 'serial' from generate_series(1, 20);
    select snowflake_ids.attach('a', 'id', kind => 'segment')";

/// Makes it what it was after the extension was dropped.
pub const AGAIN: &str = "truncate t, s, a;
    create extension snowflake_ids;
    select snowflake_ids.segment_create('t', step => 5, max_step => 50);
    select snowflake_ids.segment_create('u', step => 2, max_step => 20);
    select snowflake_ids.segment_create('d', reset => 'day', step => 10);
    alter table t alter id set default segment_nextval('t');
    alter table s alter id set default snowflake_nextval();
    select snowflake_ids.attach('a', 'id', kind => 'segment')";

/// No scope: nothing is promised of ids that are taken now.
pub const UNSURE: usize = usize::MAX;

/// A database that sessions take ids in.
#[derive(Debug)]
pub struct Database {
    pub number: usize,
    pub name: String,
    pub lives: [Lives; TAGS.len()],
    /// Within what its ids of tags must not come twice: a number of this database's own, or of several; [`UNSURE`] while it
    /// changes.
    pub scope: AtomicUsize,
    config: Config,
}

impl Database {
    pub fn new(number: usize, name: &str, server: &Server) -> Self {
        let mut config = server.config(name);
        // It waits neither for locks nor for ids for long.
        config.options("-c lock_timeout=2s -c statement_timeout=0 -c snowflake_ids.segment_wait_timeout=2s -c client_min_messages=warning");
        let (name, scope) = (name.to_owned(), AtomicUsize::new(number));
        Self { number, name, lives: Default::default(), scope, config }
    }

    /// From now on new lives of these tags may begin at any moment.
    pub fn open(&self, tags: &[usize]) {
        for tag in tags {
            self.lives[*tag].open();
        }
    }

    /// They have begun.
    pub fn confirm(&self, tags: &[usize]) {
        for tag in tags {
            self.lives[*tag].confirm();
        }
    }

    /// They have not, and will not.
    pub fn retract(&self, tags: &[usize]) {
        for tag in tags {
            self.lives[*tag].retract();
        }
    }

    /// A session of a user.
    pub fn connect(&self) -> Result<Client, postgres::Error> {
        self.config.connect(NoTls)
    }
}
