//! A registry and its nodes that run the library of the last release, and are upgraded one after another under load. `make
//! test-upgrade` builds that release and runs these tests.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_ids_server_tests::cluster::{self, JOIN, NAME, becomes};
use snowflake_ids_server_tests::installation::{Installation, Version, last_release};
use snowflake_ids_server_tests::load::{Load, Taken};
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::segments::create;
use snowflake_ids_server_tests::{Builder, Server, Shutdown, sql, sql::Session, wait};

const CALLS: [&str; 2] = ["select snowflake_nextval()", "select segment_nextval('shared')"];

/// A server with its own installation, so that it is upgraded alone.
struct Member {
    server: Server,
    installation: Installation,
}

impl Member {
    fn start(builder: Builder, version: &Version) -> Result<Self> {
        let installation = Installation::with(version)?;
        Ok(Self { server: builder.installation(&installation).start()?, installation })
    }

    /// Starts the server with the files that are installed now, and updates the extension to their version.
    fn start_and_update(&mut self) -> Result<()> {
        self.server.start_again()?;
        self.server.connect("postgres")?.run("alter extension snowflake_ids update")
    }
}

struct Rolling {
    registry: Member,
    nodes: Vec<Member>,
    /// Loads on the nodes: snowflake ids, and ids of the tag.
    loads: Vec<Vec<Load>>,
    taken: [Taken; 2],
    /// The number of calls of `goes_on` so far.
    round: usize,
}

impl Rolling {
    fn start() -> Result<Self> {
        let old = last_release()?;
        let registry = Member::start(auto(), &old)?;
        create(&mut registry.server.serve_nodes()?, "shared", "step => 50, max_step => 200")?;
        let node = || {
            let node = Member::start(cluster::node(), &old)?;
            node.server.join(&registry.server)?;
            wait_for_id(&mut node.server.connect("postgres")?)?;
            Ok(node)
        };
        let nodes = (0..2).map(|_| node()).collect::<Result<Vec<_>>>()?;
        let mut rolling = Self { registry, nodes, loads: Vec::new(), taken: Default::default(), round: 0 };
        for node in 0..rolling.nodes.len() {
            let loads = rolling.load(node)?;
            rolling.loads.push(loads);
        }
        rolling.goes_on()?;
        Ok(rolling)
    }

    fn load(&self, node: usize) -> Result<Vec<Load>> {
        CALLS.iter().map(|call| self.nodes[node].server.load_of(call, 2)).collect()
    }

    /// Checks that each node gets ids, and that the registry reserves ids for it and renews its lease.
    fn goes_on(&mut self) -> Result<()> {
        self.round += 1;
        let mut registry = self.registry.server.connect("postgres")?;
        for (node, loads) in self.nodes.iter().zip(&self.loads) {
            becomes(&mut node.server.connect("postgres")?, NAME, "up")?;
            let before = served(&mut registry, node)?;
            // Another lease duration makes the node ask for a renewal.
            node.server.reload("snowflake_ids.lease_duration", &format!("{}h", self.round + 1))?;
            wait::until_true("the registry to reserve and to renew", || {
                let now = served(&mut registry, node)?;
                Ok(now.0 > before.0 && now.1 != before.1)
            })?;
            Load::all_go_on(loads)?;
        }
        Ok(())
    }

    /// Upgrades a node under load. The node's sessions connect again afterwards.
    fn upgrade_node(&mut self, number: usize) -> Result<()> {
        let node = &mut self.nodes[number];
        node.installation.put(&Version::Present)?;
        Load::all_go_on(&self.loads[number])?;
        node.server.stop(Shutdown::Fast)?;
        let ended = std::mem::take(&mut self.loads[number]);
        self.add(ended, Load::until_ended)?;
        self.nodes[number].start_and_update()?;
        self.loads[number] = self.load(number)?;
        self.goes_on()
    }

    /// Upgrades the registry, while its nodes use the ids that they already have.
    fn upgrade_registry(&mut self) -> Result<()> {
        self.registry.installation.put(&Version::Present)?;
        self.goes_on()?;
        self.registry.server.stop(Shutdown::Fast)?;
        self.registry.start_and_update()?;
        self.goes_on()
    }

    fn add(&mut self, loads: Vec<Load>, end: impl Fn(Load) -> Taken) -> Result<()> {
        for (load, all) in loads.into_iter().zip(&mut self.taken) {
            let taken = end(load);
            ensure!(taken.refusals.is_empty(), "{:?}", taken.refusals);
            all.add(taken);
        }
        Ok(())
    }

    fn end(mut self) -> Result<()> {
        for loads in std::mem::take(&mut self.loads) {
            self.add(loads, Load::end)?;
        }
        for (taken, call) in self.taken.iter().zip(CALLS) {
            eprintln!("{call}: {} ids", taken.ids.len());
            taken.unique()?;
        }
        Ok(())
    }
}

/// The highest reserved id of the tag, and the time at which the node's lease was renewed.
fn served(registry: &mut Client, node: &Member) -> Result<(i64, Option<String>)> {
    let reserved = registry.one("select max_id from snowflake_ids.segment where tag = 'shared'")?;
    let renewed = format!(
        "select max(renewed_at)::text from snowflake_ids.worker_lease where port = {}",
        node.server.port()
    );
    Ok((reserved, registry.one(&renewed)?))
}

/// Tags are handed over only between servers of the same version. A server that joins a registry of another version gets an
/// error, whichever version is newer.
fn ensure_refused(node: &Member) -> Result<()> {
    let error = node.server.connect("postgres")?.fails(JOIN, sql::NOT_IN_STATE)?;
    ensure!(error.message().ends_with("it has another version of the extension"), "{error:?}");
    ensure!(error.hint().is_some_and(|hint| hint.starts_with("Install the same version")), "{error:?}");
    Ok(())
}

#[test]
#[ignore = "make test-upgrade builds the release that it begins with"]
fn a_registry_that_is_upgraded_first_serves_nodes_of_the_former_version() -> Result<()> {
    let mut rolling = Rolling::start()?;
    rolling.upgrade_registry()?;
    ensure_refused(&rolling.nodes[0])?;
    rolling.upgrade_node(0)?;
    ensure_refused(&rolling.nodes[1])?;
    rolling.upgrade_node(1)?;
    rolling.nodes[1].server.connect("postgres")?.run(JOIN)?;
    rolling.goes_on()?;
    rolling.end()
}

#[test]
#[ignore = "make test-upgrade builds the release that it begins with"]
fn nodes_that_are_upgraded_first_are_served_by_a_registry_of_the_former_version() -> Result<()> {
    let mut rolling = Rolling::start()?;
    rolling.upgrade_node(0)?;
    ensure_refused(&rolling.nodes[0])?;
    rolling.upgrade_node(1)?;
    rolling.upgrade_registry()?;
    rolling.nodes[0].server.connect("postgres")?.run(JOIN)?;
    rolling.goes_on()?;
    rolling.end()
}
