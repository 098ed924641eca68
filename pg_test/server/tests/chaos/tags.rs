//! Changes of tags.

use super::database::{T, TAGS, U};
use super::held::Held;
use super::world::{Outcome, World};
use anyhow::Result;
use postgres::Error;

impl World {
    /// A change that begins no new generation, and may coincide with another change.
    fn change(&mut self) -> String {
        let tag = TAGS[self.random.of(4)];
        match self.random.below(6) {
            0 => {
                format!("select snowflake_ids.segment_alter('{tag}', step => {})", 1 + self.random.below(20))
            }
            1 => format!("select snowflake_ids.segment_alter('{tag}', description => 'changed')"),
            2 => format!(
                "select snowflake_ids.segment_alter('t', increment => {}, remainder => 0)",
                1 + self.random.below(4)
            ),
            3 => format!(
                "select snowflake_ids.segment_set('{tag}', max_id + {}) from snowflake_ids.segment where tag = '{tag}'",
                self.random.below(300)
            ),
            4 => format!(
                "select snowflake_ids.segment_raise('{tag}', segment_nextval('{tag}') + {})",
                self.random.below(300)
            ),
            _ => format!(
                "update snowflake_ids.segment set max_id = max_id + {} where tag = 't'",
                self.random.below(50)
            ),
        }
    }

    /// A change that begins a new generation of `u`.
    fn beginning(&mut self) -> &'static str {
        match self.random.below(3) {
            0 => {
                "select snowflake_ids.segment_drop('u'); select snowflake_ids.segment_create('u', step => 2, max_step => 20)"
            }
            1 => {
                "delete from snowflake_ids.segment where tag = 'u'; insert into snowflake_ids.segment (tag) values ('u')"
            }
            _ => "select snowflake_ids.segment_set('u', 10, force => true)",
        }
    }

    pub fn alter(&mut self) -> Result<()> {
        let (database, change) = (self.any(), self.change());
        self.run(&self.name(database), &change).map(drop)
    }

    /// Makes a change and leaves its transaction open.
    pub fn alter_and_wait(&mut self) -> Result<()> {
        let (database, change) = (self.any(), self.change());
        self.hold(Some(database), &change, false).map(drop)
    }

    pub fn begin_anew(&mut self) -> Result<()> {
        let (database, beginning) = (self.any(), self.beginning());
        match self.random.below(4) {
            0 => self.hold(Some(database), beginning, true).map(drop),
            1 => self
                .run(
                    &self.name(database),
                    &format!("begin; {beginning}; select segment_nextval('u'); rollback"),
                )
                .map(drop),
            _ => self.anew(database, &[U], |world| world.run(&world.name(database), beginning)).map(drop),
        }
    }

    /// Drops a tag, and creates it after a while.
    pub fn drop_and_create(&mut self) -> Result<()> {
        let database = self.any();
        let name = self.name(database);
        if self.run(&name, "select snowflake_ids.segment_drop('u')")? != Outcome::Done {
            return Ok(());
        }
        self.random.sleep(300);
        self.anew(database, &[U], |world| {
            world.must(
                &name,
                "insert into snowflake_ids.segment (tag, step) values ('u', 7) on conflict do nothing",
            )?;
            Ok(Outcome::Done)
        })?;
        Ok(())
    }

    /// Creates and drops other tags.
    pub fn come_and_go(&mut self) -> Result<()> {
        let database = self.any();
        let what = match self.random.below(3) {
            0 => "delete from snowflake_ids.segment where tag like 'x%'".to_owned(),
            1 => format!(
                "select snowflake_ids.segment_create('y{}', step => 1); select segment_nextval('u')",
                self.fresh()
            ),
            _ => "update snowflake_ids.segment set tag = tag || 'z' where tag like 'y%' and length(tag) < 6"
                .to_owned(),
        };
        self.run(&self.name(database), &what).map(drop)
    }

    pub fn adopt(&mut self) -> Result<()> {
        let database = self.any();
        let kinds = ["sequence", "identity"];
        let what = match self.random.below(3) {
            0 => format!("select snowflake_ids.detach('a', 'id', kind => '{}')", kinds[self.random.of(2)]),
            _ => "select snowflake_ids.attach('a', 'id', kind => 'segment')".to_owned(),
        };
        // The column may be detached already.
        self.run(&self.name(database), &what).map(drop)
    }

    /// Takes ids of a tag in a transaction that has changed it, and rolls back. The ids must not repeat.
    pub fn change_and_take(&mut self) -> Result<()> {
        let database = self.any();
        let name = self.name(database);
        let change =
            format!("select snowflake_ids.segment_alter('t', step => {})", 1 + self.random.below(20));
        let before = self.given(database, T, 0);
        let took = self.client(&name).and_then(|mut client| -> Result<Vec<i64>, Error> {
            client.batch_execute(&format!("begin; {change}"))?;
            let rows = client.query("select segment_nextval('t') from generate_series(1, 5)", &[])?;
            client.batch_execute("rollback")?;
            rows.iter().map(|row| row.try_get(0)).collect()
        });
        match took {
            Ok(ids) => {
                self.story.tell(format!("{name}: begin; {change}; took {ids:?}; rollback"));
                let given = |id| super::generations::Given { id, ..before };
                self.own.extend(ids.into_iter().map(given));
            }
            Err(error) => drop(self.became::<()>(&format!("{name}: {change}, ids, rollback"), Err(error))?),
        }
        Ok(())
    }

    pub fn prepare(&mut self) -> Result<()> {
        let database = self.any();
        let begins = self.random.once_in(3);
        let what = if begins { self.beginning().to_owned() } else { self.change() };
        let gid = format!("g{}", self.fresh());
        let whole = format!(
            "begin; insert into t (note) values ('prepared'); savepoint a; {what}; select segment_nextval('t');
             prepare transaction '{gid}'"
        );
        match self.run(&self.name(database), &whole)? {
            Outcome::Done => self.held.push(Held::Prepared { database, name: gid, begins }),
            Outcome::Refused => {}
            Outcome::Unknown => self.replace(database)?,
        }
        Ok(())
    }
}
