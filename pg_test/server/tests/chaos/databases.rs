//! Changes of whole databases.

use super::database::{AGAIN, ALL, Database};
use super::held::Held;
use super::world::{Outcome, TIMEOUT, World};
use anyhow::{Context, Result, bail};
use snowflake_ids_server_tests::wait;
use std::fs::{self, File};
use std::process::Command;

impl World {
    /// Runs a program to its end. Returns whether it succeeded.
    fn program(&mut self, mut command: Command) -> Result<bool> {
        let said = self.server.file("said");
        let mut child =
            command.stderr(File::create(&said)?).spawn().with_context(|| format!("{command:?}"))?;
        let ended = wait::until(TIMEOUT, "a program to end", || Ok(child.try_wait()?));
        let what = format!("{:?}", command.get_args().collect::<Vec<_>>());
        let Ok(status) = ended else {
            let activity = self.activity();
            child.kill()?;
            child.wait()?;
            bail!("{what} does not end\n{activity}");
        };
        let said = fs::read_to_string(&said)?;
        self.story.tell(format!("{what}: {status} {}", said.lines().take(3).collect::<Vec<_>>().join(" | ")));
        Ok(status.success())
    }

    pub fn dump(&mut self) -> Result<()> {
        let database = self.any();
        // `--lock-wait-timeout` limits the wait for locks on tables that are dumped. For locks on the extension's own tables, pg_dump
        // waits without a limit.
        self.release_all(Some(database))?;
        let name = format!("dump{}", self.fresh());
        let file = self.server.file(&name);
        let mut command = self.server.command("pg_dump");
        command
            .args(["--format=custom", "--lock-wait-timeout=3s", "--file"])
            .arg(&file)
            .arg(self.name(database));
        if self.program(command)? {
            self.dumps.push(file);
        }
        Ok(())
    }

    /// Replaces a database's contents by a dump of this database or of another one.
    pub fn restore(&mut self) -> Result<()> {
        if self.dumps.is_empty() || self.random.once_in(2) {
            self.dump()?;
        }
        let (database, at_once) = (self.any(), !self.random.once_in(3));
        let Some(file) = self.dumps.get(self.random.of(self.dumps.len())).cloned() else { return Ok(()) };
        // pg_restore waits for locks without a limit.
        self.release_all(Some(database))?;
        let mut command = self.server.command("pg_restore");
        command.args(["--clean", "--if-exists"]).args(at_once.then_some("--single-transaction"));
        command.arg("--dbname").arg(self.name(database)).arg(file);
        let restore = |world: &mut Self| {
            Ok(match (world.program(command)?, at_once) {
                (true, _) => Outcome::Done,
                (false, true) => Outcome::Refused,
                (false, false) => Outcome::Unknown,
            })
        };
        self.anew(database, &ALL, restore).map(drop)
    }

    /// Drops the extension and creates it again, while the database is in use.
    pub fn extension(&mut self) -> Result<()> {
        let database = self.any();
        let name = self.name(database);
        self.release_all(Some(database))?;
        let at_once = self.random.once_in(2);
        let drop = "drop extension snowflake_ids cascade";
        let anew = |world: &mut Self| {
            if at_once {
                // Meanwhile buffers run empty, and calls wait for objects that do not exist.
                let pause = world.random.below(2);
                return world.run(&name, &format!("{drop}; select pg_sleep({pause}.5); {AGAIN}"));
            }
            let dropped = world.run(&name, drop)?;
            if dropped != Outcome::Done {
                return Ok(dropped);
            }
            world.random.sleep(500);
            // The outcome of a lost session is not known.
            Ok(if world.run(&name, AGAIN)? == Outcome::Done { Outcome::Done } else { Outcome::Unknown })
        };
        self.anew(database, &ALL, anew).map(std::mem::drop)
    }

    /// Drops a database and creates one from the template, with the same OID if possible.
    pub fn same_oid(&mut self) -> Result<()> {
        let database = self.any();
        let name = self.name(database);
        self.release_all(Some(database))?;
        let found = self.client("postgres").and_then(|mut client| {
            // In a server with assertions, one of Postgres's own assertions fails if another process has read the dropped
            // database's statistics (docs/versions.md).
            let query = "select oid, current_setting('server_version_num')::int >= 150000
                                and not current_setting('debug_assertions')::bool
                         from pg_database where datname = $1";
            client.query_one(query, &[&name])
        });
        let Ok(found) = found else { return Ok(()) };
        let oid = if found.get(1) { format!("oid {}", found.get::<_, u32>(0)) } else { String::new() };
        self.anew(database, &ALL, |world| {
            world.must("postgres", &format!("drop database if exists {name} with (force)"))?;
            world.must("postgres", &format!("create database {name} template tpl {oid}"))?;
            Ok(Outcome::Done)
        })?;
        Ok(())
    }

    /// Ends all sessions of a database, and refuses new ones until [`Self::reopen`].
    fn close(&mut self, database: usize) -> Result<()> {
        self.release_all(Some(database))?;
        let name = self.name(database);
        self.run("postgres", &format!("alter database {name} allow_connections false"))?;
        let sessions = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}' and backend_type = 'client backend'"
        );
        self.run("postgres", &sessions).map(drop)
    }

    fn reopen(&mut self, database: usize) -> Result<()> {
        self.must("postgres", &format!("alter database {} allow_connections true", self.name(database)))
    }

    pub fn rename(&mut self) -> Result<()> {
        let database = self.any();
        let name = self.name(database);
        self.close(database)?;
        if self.run("postgres", &format!("alter database {name} rename to {name}_renamed"))? == Outcome::Done
        {
            self.random.sleep(500);
            self.must("postgres", &format!("alter database {name}_renamed rename to {name}"))?;
        }
        self.reopen(database)
    }

    /// Copies a database. The copy issues ids of its own, and can be dropped.
    pub fn copy(&mut self) -> Result<()> {
        let database = self.any();
        let copy = format!("copy{}", self.fresh());
        self.close(database)?;
        let made =
            self.run("postgres", &format!("create database {copy} template {}", self.name(database)))?;
        self.reopen(database)?;
        if made != Outcome::Done {
            return Ok(());
        }
        let rows = "insert into t (note) select 'of a copy' from generate_series(1, 50);
            insert into s (note) select 'of a copy' from generate_series(1, 50)";
        for _ in 0..self.random.below(3) {
            self.run(&copy, rows)?;
        }
        let took =
            self.client(&copy).and_then(|mut client| client.query("select snowflake_nextvals(50)", &[]));
        self.snowflakes.extend(took.iter().flatten().map(|row| row.get::<_, i64>(0)));
        self.must("postgres", &format!("drop database {copy}"))
    }

    pub fn shut(&mut self) -> Result<()> {
        let database = self.any();
        let what = format!("alter database {} allow_connections false", self.name(database));
        if self.run("postgres", &what)? == Outcome::Done {
            self.held.push(Held::Closed { database });
        }
        Ok(())
    }

    /// Locks databases by `ALTER DATABASE` in a transaction that stays open.
    pub fn alter_database(&mut self) -> Result<()> {
        let database = self.any();
        let name = self.name(database);
        let what = match self.random.below(3) {
            0 => "alter database unrelated rename to unrelated_renamed".to_owned(),
            1 => format!("alter database {name} connection limit 50"),
            _ => {
                format!("comment on database {name} is 'changed'; alter database {name} set work_mem = '5MB'")
            }
        };
        self.hold(None, &what, false).map(drop)
    }

    /// Drops all databases at the end.
    pub fn drop_databases(&mut self) -> Result<()> {
        for name in self
            .databases
            .iter()
            .map(|database: &std::sync::Arc<Database>| database.name.clone())
            .collect::<Vec<_>>()
        {
            self.must("postgres", &format!("drop database {name}"))?;
        }
        Ok(())
    }
}
