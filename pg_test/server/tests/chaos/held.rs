//! Things left open for a while: transactions, locks, prepared transactions, and a database that accepts no sessions.

use super::database::U;
use super::world::{Outcome, World};
use anyhow::Result;
use postgres::Client;
use std::sync::Arc;

/// Something left open, to be ended later.
pub enum Held {
    /// A transaction, in the database `postgres` if none is named. `begins`: its commit begins a new generation of `u`.
    Open { database: Option<usize>, client: Box<Client>, begins: bool },
    /// A prepared transaction.
    Prepared { database: usize, name: String, begins: bool },
    /// A database that accepts no sessions.
    Closed { database: usize },
}

impl Held {
    pub fn database(&self) -> Option<usize> {
        match self {
            Self::Open { database, .. } => *database,
            Self::Prepared { database, .. } | Self::Closed { database } => Some(*database),
        }
    }

    /// The place of this thing in the order in which all things are ended. A closed database is opened after the transactions that
    /// may lock it have ended. Prepared transactions come last, because only a session in their database can end them.
    const fn order(&self) -> u8 {
        match self {
            Self::Open { .. } => 0,
            Self::Closed { .. } => 1,
            Self::Prepared { .. } => 2,
        }
    }

    /// Whether a crash of the server ends this thing.
    pub fn is_lost_by_a_crash(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

impl World {
    /// Runs statements in a transaction and leaves it open.
    pub fn hold(&mut self, database: Option<usize>, what: &str, begins: bool) -> Result<Outcome> {
        let name = database.map_or_else(|| "postgres".to_owned(), |database| self.name(database));
        let begun = self.client(&name).and_then(|mut client| {
            client.batch_execute(&format!("begin; {what}"))?;
            Ok(Box::new(client))
        });
        match begun {
            Ok(client) => {
                self.story.tell(format!("{name}: begin; {what}"));
                self.held.push(Held::Open { database, client, begins });
                Ok(Outcome::Done)
            }
            Err(error) => self.became::<()>(&format!("{name}: begin; {what}"), Err(error)),
        }
    }

    /// Ends everything left open in this database, and everything that belongs to no database. Without a database, ends
    /// everything.
    pub fn release_all(&mut self, database: Option<usize>) -> Result<()> {
        let held =
            |held: &mut Held| database.is_none() || held.database().is_none() || held.database() == database;
        let mut held: Vec<_> = self.held.extract_if(.., held).collect();
        held.sort_by_key(Held::order);
        held.into_iter().try_for_each(|held| self.release(held))
    }

    /// Ends one thing left open, if there is one.
    pub fn release_any(&mut self) -> Result<()> {
        if !self.held.is_empty() {
            let held = self.held.swap_remove(self.random.of(self.held.len()));
            self.release(held)?;
        }
        Ok(())
    }

    fn release(&mut self, held: Held) -> Result<()> {
        let how = if self.random.once_in(2) { "commit" } else { "rollback" };
        match held {
            Held::Open { database, mut client, begins } => {
                let mut end = |world: &mut Self| {
                    let ended = client.batch_execute(how);
                    let name =
                        database.map_or("postgres", |database| &world.databases[database].name).to_owned();
                    world.became(&format!("{name}: {how}"), ended)
                };
                match database {
                    Some(database) if begins && how == "commit" => self.anew(database, &[U], end)?,
                    _ => end(self)?,
                };
            }
            Held::Prepared { database, name, begins } => {
                let generations = Arc::clone(&self.databases[database]);
                let begins = begins && how == "commit";
                if begins {
                    generations.open(&[U]);
                }
                self.must(&self.name(database), &format!("{how} prepared '{name}'"))?;
                if begins {
                    generations.confirm(&[U]);
                }
            }
            Held::Closed { database } => {
                self.must(
                    "postgres",
                    &format!("alter database {} allow_connections true", self.name(database)),
                )?;
            }
        }
        Ok(())
    }
}
