//! Several registries for one tag: each has its share of the numbers, and ids continue while any one of them works.

use snowflake_ids_server_tests::cluster::{
    becomes, node, refused_with, registry_status, row, said, wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next, settled, status, take};
use snowflake_ids_server_tests::snowflakes;

const NAMES: [&str; 2] = ["first", "second"];
const JOIN: &str = "select snowflake_ids.use_registry('first', 'second')";

/// Two registries, and two servers that know both.
struct Several {
    registries: [Server; 2],
    nodes: [Server; 2],
}

impl Several {
    fn start() -> Result<Self> {
        // With two registries, the node waits a fifth of this time for each registry.
        let node = || node().set("snowflake_ids.registry_timeout", "5s").start();
        let several = Self { registries: [auto().start()?, auto().start()?], nodes: [node()?, node()?] };
        several.introduce()?;
        Ok(several)
    }

    fn introduce(&self) -> Result<()> {
        for (name, registry) in NAMES.into_iter().zip(&self.registries) {
            registry.serve_nodes()?;
            self.nodes.iter().try_for_each(|node| node.introduce(name, &[registry.port()]).map(drop))?;
        }
        Ok(())
    }

    fn renew(&mut self) -> Result<()> {
        self.nodes.iter().chain(&self.registries).try_for_each(Server::renew)?;
        self.introduce()
    }

    /// Creates the tag `t` on both registries, with a share on each.
    fn share(&self) -> Result<()> {
        for (remainder, registry) in self.registries.iter().enumerate() {
            let definition = format!("step => 10, max_step => 100, increment => 2, remainder => {remainder}");
            create(&mut registry.connect("postgres")?, "t", &definition)?;
        }
        Ok(())
    }

    /// A session of the first node, before it has joined.
    fn stranger(&self) -> Result<Client> {
        self.nodes[0].connect("postgres")
    }

    /// A session of the first node, after it has joined both registries. Both share the tag.
    fn joined(&self) -> Result<Client> {
        self.share()?;
        let mut client = self.stranger()?;
        client.run(JOIN)?;
        Ok(client)
    }
}

/// The number of ids from each registry.
fn shares(ids: &[i64]) -> [usize; 2] {
    let odd = ids.iter().filter(|id| **id % 2 == 1).count();
    [ids.len() - odd, odd]
}

/// Waits until a registry gives ids again.
fn used_again(registry: &Server) -> Result<()> {
    let before = registry.version("t")?;
    wait::until_true("reservations", || Ok(registry.version("t")? != before))
}

/// While two nodes are under load, each registry in turn is killed, and later hangs.
fn ids_flow_with_any_one_of_them_alive_and_who_is_back_is_used_again(several: &mut Several) -> Result<()> {
    let mut clients = [several.joined()?, several.nodes[1].connect("postgres")?];
    clients[1].run(JOIN)?;
    let loads = several.nodes.iter().map(|node| node.load_of_tag("t", 1)).collect::<Result<Vec<_>>>()?;
    Load::all_go_on(&loads)?;
    for number in [0, 1] {
        used_again(&several.registries[number])?;
        several.registries[number].kill9()?;
        Load::all_go_on(&loads)?;
        used_again(&several.registries[1 - number])?;
        becomes(&mut clients[number], NAMES[number], "failing")?;
        several.registries[number].start_again()?;
        used_again(&several.registries[number])?;

        let paused = several.registries[number].pause()?;
        Load::all_go_on(&loads)?;
        used_again(&several.registries[1 - number])?;
        drop(paused);
        used_again(&several.registries[number])?;
        becomes(&mut clients[number], NAMES[number], "up")?;
    }
    let taken = Load::end_all(loads);
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    assert!(shares(&taken.ids).into_iter().all(|share| share > 100), "{:?}", shares(&taken.ids));
    taken.unique()
}

fn ids_are_refused_only_when_none_is_left_and_both_are_named(several: &mut Several) -> Result<()> {
    let mut client = several.joined()?;
    let mut taken = take(&mut client, "t", 200)?;
    wait_for_id(&mut client)?;
    assert_eq!(snowflakes::status::<String>(&mut client, "leased_from")?, "first");
    for registry in &mut several.registries {
        registry.stop(Shutdown::Fast)?;
    }
    wait_at_most(&mut client, Duration::from_secs(1))?;
    let [first, second] = NAMES.map(|name| format!("Registry \"{name}\""));
    taken.extend(refused_with(&mut client, "t", &[&first, &second])?.0);
    wait_as_long_as_it_takes(&mut client)?;
    several.registries[1].start_again()?;
    let more = take(&mut client, "t", 100)?;
    assert_eq!(shares(&more), [0, 100]);
    taken.extend(more);
    several.registries[0].start_again()?;
    wait::until_true("ids of the first", || {
        let more = take(&mut client, "t", 50)?;
        taken.extend(&more);
        Ok(shares(&more)[0] > 0)
    })?;
    snowflakes::next(&mut client)?;
    ids::unique(taken)
}

fn wrong_terms(error: &DbError, registry: &str) {
    assert!(error.hint().is_some_and(|hint| hint.contains("segment_alter")), "{error:?}");
    let said = said(error);
    assert!(said.contains("\"t\"") && said.contains(registry), "{error:?}");
}

fn terms_that_would_repeat_ids_are_refused_at_once(several: &mut Several) -> Result<()> {
    several.share()?;
    let mut client = several.stranger()?;
    let mut at_second = several.registries[1].connect("postgres")?;
    create(&mut client, "t", "")?;
    for wrong in
        ["increment => 2, remainder => 0", "increment => 3, remainder => 1", "increment => 1, remainder => 0"]
    {
        at_second.run(&format!("select snowflake_ids.segment_alter('t', {wrong})"))?;
        wrong_terms(&client.error(JOIN)?, "second");
        assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 0);
    }
    // Any multiple of the number of registries is accepted.
    at_second.run("select snowflake_ids.segment_alter('t', increment => 6, remainder => 3)")?;
    client.run(JOIN)?;
    let taken = take(&mut client, "t", 200)?;
    assert!(taken.iter().all(|id| id % 2 == 0 || id % 6 == 3), "{taken:?}");
    ids::unique(taken)
}

fn terms_that_become_wrong_take_a_registry_out_until_they_are_right(several: &mut Several) -> Result<()> {
    let mut client = several.joined()?;
    let mut taken = take(&mut client, "t", 300)?;
    let mut at_second = several.registries[1].connect("postgres")?;
    at_second.run("select snowflake_ids.segment_alter('t', remainder => 0)")?;
    let more = take(&mut client, "t", 1000)?;
    taken.extend(&more);
    let last = take(&mut client, "t", 500)?;
    assert_eq!(shares(&last), [500, 0]);
    taken.extend(last);
    let trouble = wait::until(TIMEOUT, "the reason to be shown", || {
        let of_registry: Option<String> = registry_status(&mut client, "second", "error")?;
        let of_tag: Option<String> = status(&mut client, "t", "trouble")?;
        Ok(of_registry.or(of_tag))
    })?;
    assert!(trouble.contains("remainder") || trouble.contains("increment"), "{trouble}");
    at_second.run("select snowflake_ids.segment_alter('t', remainder => 1)")?;
    wait::until_true("ids of the second", || {
        let more = take(&mut client, "t", 50)?;
        taken.extend(&more);
        Ok(shares(&more)[1] > 0)
    })?;
    ids::unique(taken)
}

fn tags_that_are_handed_over_or_made_on_use_get_their_terms_by_themselves(
    several: &mut Several,
) -> Result<()> {
    let mut client = several.stranger()?;
    create(&mut client, "t", "step => 10, max_step => 100")?;
    let mut taken = take(&mut client, "t", 37)?;
    client.run(JOIN)?;
    client.run("set snowflake_ids.segment_auto_create = on")?;
    let mut of_other = vec![next(&mut client, "other")?];
    // The faster registry is asked next, so each registry runs alone for a while.
    for (number, what) in ["ids of the first", "ids of the second"].into_iter().enumerate() {
        let _paused = several.registries[1 - number].pause()?;
        wait::until_true(what, || {
            taken.extend(take(&mut client, "t", 100)?);
            of_other.extend(take(&mut client, "other", 1000)?);
            Ok(shares(&taken[37..])[number] > 50 && shares(&of_other)[number] > 50)
        })?;
    }
    for (number, registry) in several.registries.iter().enumerate() {
        for tag in ["t", "other"] {
            let mut at_registry = registry.connect("postgres")?;
            let definition: String = row(&mut at_registry, tag, "increment || ' ' || remainder")?;
            assert_eq!(definition, format!("2 {number}"), "{tag}");
        }
    }
    for taken in [&taken, &of_other] {
        assert!(shares(taken).into_iter().all(|share| share > 50), "{:?}", shares(taken));
    }
    assert!(taken[37..].iter().all(|id| *id > taken[36]), "{taken:?}");
    ids::unique(of_other)?;
    ids::unique(taken)
}

/// The order decides which numbers belong to which registry, so the order must not change.
fn a_second_registry_is_added_and_taken_away(several: &mut Several) -> Result<()> {
    let mut client = several.stranger()?;
    create(&mut several.registries[0].connect("postgres")?, "t", "step => 10, max_step => 10")?;
    client.run("select snowflake_ids.use_registry('first')")?;
    let mut taken = take(&mut client, "t", 95)?;
    wrong_terms(&client.error(JOIN)?, "first");
    taken.extend(take(&mut client, "t", 20)?);
    let alter = "select snowflake_ids.segment_alter('t', increment => 2, remainder => 0)";
    several.registries[0].connect("postgres")?.run(alter)?;
    let above: i64 = row(&mut several.registries[0].connect("postgres")?, "t", "max_id")?;
    let definition =
        format!("step => 10, max_step => 10, increment => 2, remainder => 1, start => {}", above + 1);
    create(&mut several.registries[1].connect("postgres")?, "t", &definition)?;
    client.run(JOIN)?;
    // A registry that answers slowly is left out for a while.
    let mut more = Vec::new();
    wait::until_true("ids of both", || {
        more.extend(take(&mut client, "t", 50)?);
        Ok(shares(&more).into_iter().all(|share| share > 50))
    })?;
    taken.extend(more);
    client.run("select snowflake_ids.use_registry('first')")?;
    let more = take(&mut client, "t", 100)?;
    assert_eq!(shares(&more[50..]), [50, 0]);
    taken.extend(more);
    ids::unique(taken)
}

/// The node compares each registry with the ids received from it. If one registry was set back, no registry is changed.
fn where_one_was_set_back_none_is_raised(several: &mut Several) -> Result<()> {
    let mut client = several.joined()?;
    let mut taken = take(&mut client, "t", 300)?;
    let mut at_registries =
        [several.registries[0].connect("postgres")?, several.registries[1].connect("postgres")?];
    let highest = |clients: &mut [Client; 2]| -> Result<[i64; 2]> {
        let [first, second] = clients;
        Ok([row(first, "t", "max_id")?, row(second, "t", "max_id")?])
    };
    wait::until_true("both to be used", || {
        taken.extend(take(&mut client, "t", 50)?);
        Ok(highest(&mut at_registries)?.iter().all(|highest| *highest > 0))
    })?;
    settled(&mut client, "t")?;
    let before = highest(&mut at_registries)?;
    // The first registry would be raised if the second were not refused.
    client
        .run("insert into snowflake_ids.received (identity, tag, max_id) values ('another', 't', 50000)")?;
    at_registries[1].run("select snowflake_ids.segment_set('t', 1, true)")?;
    let set_back = highest(&mut at_registries)?;
    let error = client.error(JOIN)?;
    assert!(error.message().contains("cannot use registry \"second\": segment tag \"t\""), "{error:?}");
    assert_eq!(highest(&mut at_registries)?, set_back);
    at_registries[1].run(&format!("select snowflake_ids.segment_raise('t', {})", before[1]))?;
    client.run(JOIN)?;
    assert!(highest(&mut at_registries)?.iter().all(|highest| *highest >= 50_000));
    taken.extend(take(&mut client, "t", 300)?);
    ids::unique(taken)
}

#[test]
fn any_one_of_several_suffices() -> Result<()> {
    cases::run(
        cases![
            ids_flow_with_any_one_of_them_alive_and_who_is_back_is_used_again,
            ids_are_refused_only_when_none_is_left_and_both_are_named,
            terms_that_would_repeat_ids_are_refused_at_once,
            terms_that_become_wrong_take_a_registry_out_until_they_are_right,
            tags_that_are_handed_over_or_made_on_use_get_their_terms_by_themselves,
            a_second_registry_is_added_and_taken_away,
            where_one_was_set_back_none_is_raised
        ],
        Several::start,
        Several::renew,
    )
}
