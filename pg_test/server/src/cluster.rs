//! A registry and its nodes: the servers whose ids come from it.

use crate::builder::Builder;
use crate::cases::{self, Case};
use crate::load::Taken;
use crate::registry::auto;
use crate::segments::{TIMEOUT, take_until_refused};
use crate::server::{Server, Shutdown};
use crate::sql::Session;
use crate::wait;
use anyhow::{Context, Result, ensure};
use postgres::error::{DbError, SqlState};
use postgres::types::FromSqlOwned;
use postgres::{Client, NoTls};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The registry's name on its nodes.
pub const NAME: &str = "central";
/// Makes a server a node of the registry [`NAME`].
pub const JOIN: &str = "select snowflake_ids.use_registry('central')";
/// Makes a node use its own registry again.
pub const LEAVE: &str = "select snowflake_ids.use_local_registry()";
/// The role under which nodes reserve ids.
pub const ROLE: &str = "shard";
/// The password of [`ROLE`].
pub const PASSWORD: &str = "sesame";

/// A registry and its nodes.
#[derive(Debug)]
pub struct Cluster {
    /// The server with the tables of tags and worker ids.
    pub registry: Server,
    /// Servers that have joined the registry.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts a registry and this many nodes.
    #[track_caller]
    pub fn start(nodes: usize) -> Result<Self> {
        Self::of(auto(), &node(), nodes)
    }

    /// Starts a registry and this many nodes, with these settings.
    #[track_caller]
    pub fn of(registry: Builder, node: &Builder, nodes: usize) -> Result<Self> {
        let cluster = Self::strangers_of(registry, node, nodes)?;
        cluster.join()?;
        Ok(cluster)
    }

    /// Starts a registry, and this many servers that know the registry but have not joined it.
    #[track_caller]
    fn strangers_of(registry: Builder, node: &Builder, nodes: usize) -> Result<Self> {
        let registry = registry.start()?;
        let nodes = (0..nodes).map(|_| node.clone().start());
        let cluster = Self { nodes: nodes.collect::<Result<_>>()?, registry };
        cluster.introduce()?;
        Ok(cluster)
    }

    fn introduce(&self) -> Result<()> {
        self.registry.serve_nodes()?;
        self.nodes.iter().try_for_each(|node| node.introduce(NAME, &[self.registry.port()]).map(drop))
    }

    fn join(&self) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.connect("postgres")?.run(JOIN))
    }

    /// Runs cases on one registry with this many nodes. All nodes join it anew for each case.
    ///
    /// # Errors
    /// A case failed.
    pub fn cases(nodes: usize, cases: &[Case<Self>]) -> Result<()> {
        let start = || Self::start(nodes);
        cases::run(cases, start, |cluster| cluster.renew().and_then(|()| cluster.join()))
    }

    /// Runs cases on a registry and one server that knows the registry but has not joined it.
    ///
    /// # Errors
    /// A case failed.
    pub fn cases_of_strangers(cases: &[Case<Self>]) -> Result<()> {
        cases::run(cases, || Self::strangers_of(auto(), &node(), 1), |cluster| cluster.renew())
    }

    fn renew(&self) -> Result<()> {
        // The nodes are renewed first, so that they do not look for a registry that is gone.
        self.nodes.iter().try_for_each(Server::renew)?;
        self.registry.renew()?;
        self.introduce()?;
        self.nodes
            .iter()
            .chain([&self.registry])
            .try_for_each(|server| cases::forget_leases(&mut server.connect("postgres")?))
    }

    /// Creates a tag in the registry. `definition`: further arguments of `segment_create`.
    #[track_caller]
    pub fn create(&self, tag: &str, definition: &str) -> Result<()> {
        crate::segments::create(&mut self.registry.connect("postgres")?, tag, definition)
    }

    /// Opens a session on the first node.
    #[track_caller]
    pub fn session(&self) -> Result<Client> {
        self.nodes[0].connect("postgres")
    }
}

/// Settings of a node. The timeout is long, so that a node waits for its registry on a busy machine. Tests with a hung registry
/// set a shorter one.
pub fn node() -> Builder {
    auto().set("snowflake_ids.registry_timeout", "20s")
}

/// Starts a registry, and a server that knows the registry but has not joined it. Also returns a session on that server.
#[track_caller]
pub fn strangers() -> Result<(Server, Server, Client)> {
    let (registry, node) = (auto().start()?, node().start()?);
    registry.serve_nodes()?;
    let client = node.introduce(NAME, &[registry.port()])?;
    Ok((registry, node, client))
}

impl Server {
    /// Makes the server a registry: creates the extension, and a role that has a password and may only reserve and hand tags over.
    #[track_caller]
    pub fn serve_nodes(&self) -> Result<Client> {
        let mut client = self.session()?;
        client.run(&format!("select snowflake_ids.registry_allow('{ROLE}', '{PASSWORD}')"))?;
        self.rule(&format!("host all {ROLE} 127.0.0.1/32 scram-sha-256"))?;
        Ok(client)
    }

    /// Adds a rule to the top of `pg_hba.conf`.
    #[track_caller]
    pub fn rule(&self, rule: &str) -> Result<()> {
        let path = self.data().join("pg_hba.conf");
        let rules = fs::read_to_string(&path)?;
        fs::write(&path, format!("{rule}\n{rules}"))?;
        self.read_files_again()
    }

    /// Opens a session by TCP, as a user with a password.
    #[track_caller]
    pub fn connect_as(&self, user: &str, password: &str) -> Result<Client> {
        let mut config = Client::configure();
        config.host("127.0.0.1").port(self.port()).user(user).password(password).dbname("postgres");
        Ok(config.connect(NoTls)?)
    }

    /// Defines a foreign server for a registry in the database `postgres`. The foreign server's hosts are `ports` on 127.0.0.1;
    /// nodes use the port whose server accepts writes.
    #[track_caller]
    pub fn introduce(&self, name: &str, ports: &[u16]) -> Result<Client> {
        let mut client = self.session()?;
        let hosts = vec!["127.0.0.1"; ports.len()].join(",");
        let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        client.run(&format!(
            "create extension if not exists postgres_fdw;
             create server {name} foreign data wrapper postgres_fdw options
               (host '{hosts}', port '{ports}', dbname 'postgres', target_session_attrs 'read-write');
             create user mapping for postgres server {name} options (user '{ROLE}', password '{PASSWORD}')"
        ))?;
        Ok(client)
    }

    /// Makes the server a node of a registry.
    #[track_caller]
    pub fn join(&self, registry: &Self) -> Result<Client> {
        let mut client = self.introduce(NAME, &[registry.port()])?;
        client.run(JOIN)?;
        Ok(client)
    }

    /// Ends the nodes' sessions on this registry.
    #[track_caller]
    pub fn end_nodes_sessions(&self) -> Result<()> {
        let sessions =
            format!("select pg_terminate_backend(pid) from pg_stat_activity where usename = '{ROLE}'");
        self.connect("postgres")?.run(&sessions)
    }

    /// Replaces this server's data directory by another server's. The other server is removed.
    #[track_caller]
    pub fn replace_by(&mut self, mut other: Self) -> Result<()> {
        self.stop(Shutdown::Fast)?;
        if other.postmaster.is_some() {
            other.stop(Shutdown::Fast)?;
        }
        fs::remove_dir_all(self.data())?;
        fs::rename(other.data(), self.data())?;
        // The data directory contains the other server's address.
        self.set_address()?;
        self.start_again()
    }

    /// The version of a tag's row, which changes with each reservation.
    #[track_caller]
    pub fn version(&self, tag: &str) -> Result<i64> {
        row(&mut self.connect("postgres")?, tag, "version")
    }

    /// A file in the server's folder, for a program of the server.
    pub fn file(&self, name: &str) -> PathBuf {
        self.socket_folder().join(name)
    }
}

/// A column of a tag's row in the table of tags.
#[track_caller]
pub fn row<T: FromSqlOwned>(client: &mut Client, tag: &str, column: &str) -> Result<T> {
    client.one(&format!("select {column} from snowflake_ids.segment where tag = '{tag}'"))
}

/// A column of `registry_status` for a registry of the node.
#[track_caller]
pub fn registry_status<T: FromSqlOwned>(client: &mut Client, name: &str, column: &str) -> Result<T> {
    let status = "snowflake_ids.registry_status where database = current_database()";
    client.one(&format!("select {column} from {status} and server = '{name}'"))
}

/// Waits until a registry has this state.
#[track_caller]
pub fn becomes(client: &mut Client, name: &str, state: &str) -> Result<()> {
    let mut seen = String::new();
    let waited = wait::until_true("the registry's state to change", || {
        seen = registry_status(client, name, "state || coalesce(': ' || error, '')")?;
        Ok(seen.starts_with(state))
    });
    waited.with_context(|| format!("it is not {state} but {seen}"))
}

/// The highest id of a tag that a node has received.
#[track_caller]
pub fn received(client: &mut Client, tag: &str) -> Result<i64> {
    client.one(&format!("select max(max_id) from snowflake_ids.received where tag = '{tag}'"))
}

/// Message, DETAIL and HINT of an error.
pub fn said(error: &DbError) -> String {
    [Some(error.message()), error.detail(), error.hint()].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Takes ids of a tag until a call fails. Returns the ids and the error.
#[track_caller]
pub fn exhaust(client: &mut Client, tag: &str) -> Result<(Vec<i64>, DbError)> {
    let (ids, error) = take_until_refused(client, tag);
    let error = error.downcast::<postgres::Error>()?;
    let error = error.as_db_error().with_context(|| format!("the session is lost: {error}"))?.clone();
    Ok((ids, error))
}

/// Takes ids of a tag until a call's error contains all of these words. Returns the ids and this error. Earlier errors may lack
/// some of the words: on a busy machine a call may end before the reason is known.
#[track_caller]
pub fn refused_with(client: &mut Client, tag: &str, words: &[&str]) -> Result<(Vec<i64>, DbError)> {
    let (mut taken, mut last) = (Vec::new(), String::new());
    let refused = wait::until(TIMEOUT, "a refusal that says why", || {
        let (ids, error) = exhaust(client, tag)?;
        taken.extend(ids);
        ensure!(error.code() == &SqlState::INSUFFICIENT_RESOURCES, "{error:?}");
        ensure!(
            error.message().starts_with(&format!("no ids for segment tag \"{tag}\" within")),
            "{error:?}"
        );
        last = said(&error);
        Ok(Some(error).filter(|_| words.iter().all(|word| last.contains(word))))
    });
    let refused = refused.with_context(|| format!("no {words:?}: {last}"))?;
    Ok((taken, refused))
}

/// Checks that calls failed only with the error that a faulty registry may cause.
#[track_caller]
pub fn only_for_want_of_ids(taken: &Taken) -> Result<()> {
    let other = taken.refusals.iter().find(|refusal| refusal.code() != &SqlState::INSUFFICIENT_RESOURCES);
    ensure!(other.is_none(), "{other:?}");
    Ok(())
}

/// Sets the limit for calls that wait for ids.
#[track_caller]
pub fn wait_at_most(client: &mut Client, time: Duration) -> Result<()> {
    let set = format!("set snowflake_ids.segment_wait_timeout = '{}ms'", time.as_millis());
    client.run(&set)
}

/// Resets the limit for calls that wait for ids.
#[track_caller]
pub fn wait_as_long_as_it_takes(client: &mut Client) -> Result<()> {
    client.run("reset snowflake_ids.segment_wait_timeout")
}

impl Server {
    /// Makes a function of this registry lie to nodes. `lie` is an SQL expression for the response. It can use `told`, the true
    /// response, and `mood`, a text set by [`Server::set_mood`]. While the mood is empty, responses are true.
    #[track_caller]
    pub fn lies(&self, function: &str, lie: &str) -> Result<Client> {
        let mut client = self.connect("postgres")?;
        client.run(&format!(
            "create table mood (mood text not null); insert into mood values ('');
             alter extension snowflake_ids drop function snowflake_ids.{function}(text);
             alter function snowflake_ids.{function}(text) rename to honestly;
             create function snowflake_ids.{function}(asked text) returns text
             language plpgsql security definer set timezone = 'UTC' as $lies$
             declare
                 told text := snowflake_ids.honestly(asked);
                 mood text := (select m.mood from public.mood m);
             begin
                 return case when mood = '' then told else {lie} end;
             end $lies$;
             grant execute on function snowflake_ids.{function}(text) to {ROLE}"
        ))?;
        Ok(client)
    }

    /// Sets the mood of a registry that [lies](Server::lies).
    #[track_caller]
    pub fn set_mood(&self, mood: &str) -> Result<()> {
        Ok(self.connect("postgres")?.execute("update mood set mood = $1", &[&mood]).map(drop)?)
    }
}
