//! A lying registry. A node accepts possible responses, rejects impossible responses without harm, and hands out no id twice.

use snowflake_ids_server_tests::cluster::{
    JOIN, NAME, becomes, exhaust, refused_with, registry_status, row, said, wait_as_long_as_it_takes,
    wait_at_most,
};
use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::processes::memory;
use snowflake_ids_server_tests::segments::{TIMEOUT, WORKER, next, process, take};

/// Makes the registry lie by `lie`. Returns a session of a node, with a tag in use that has ten ids per segment.
fn liar(cluster: &Cluster, lie: &str) -> Result<Client> {
    cluster.nodes[0].reload("snowflake_ids.registry_timeout", "1min")?;
    cluster.registry.lies("registry_serve", lie)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    next(&mut client, "t")?;
    wait_at_most(&mut client, Duration::from_secs(2))?;
    Ok(client)
}

/// False responses about an undated tag: the tag is dated and begins today, or the tag is undated and begins again.
const REDATED: &str = r#"regexp_replace(case mood when 'dated' then
    replace(replace(told, '"day":0,"until":"9223372036854775807"',
            format('"day":%s,"until":"%sT00:00:00Z"', current_date - date '1970-01-01', current_date + 1)),
        '{n}', '{YYYY}{MM}{DD}-{n}') else told end, '"first":\d+', '"first":1')"#;

fn a_registry_that_makes_a_tag_dated_and_back_repeats_no_id(cluster: &mut Cluster) -> Result<()> {
    let mut client = liar(cluster, REDATED)?;
    let mut taken = Vec::new();
    for mood in ["dated", "anew", "dated", "anew", "dated"] {
        cluster.registry.set_mood(mood)?;
        taken.extend(refused_with(&mut client, "t", &[NAME])?.0);
        // An honest response comes in between, so that the node asks again and gets the next lie.
        cluster.registry.set_mood("")?;
        taken.push(wait::until(TIMEOUT, "an id of a registry that is honest again", || {
            Ok(next(&mut client, "t").ok())
        })?);
    }
    wait_as_long_as_it_takes(&mut client)?;
    taken.extend(take(&mut client, "t", 50)?);
    ids::growing(&taken)
}

/// An operator makes the tag dated, so the registry honestly reports a dated tag. The statement that the error recommends works.
fn a_tag_that_an_operator_makes_dated_is_refused_until_that_is_meant(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    take(&mut client, "t", 10)?;
    cluster.registry.connect("postgres")?.run(
        "select snowflake_ids.segment_drop('t');
         select snowflake_ids.segment_create('t', step => 10, max_step => 10, reset => 'day')",
    )?;
    wait_at_most(&mut client, Duration::from_secs(2))?;
    let delete = "DELETE FROM snowflake_ids.received WHERE tag = 't'";
    refused_with(&mut client, "t", &[NAME, delete])?;
    client.run(delete)?;
    assert_eq!(wait::until(TIMEOUT, "an id", || Ok(next(&mut client, "t").ok()))?, 1);
    Ok(())
}

/// Replaces the first id of a tag whose ids begin with 7000000000.
const GARBLED: &str = r#"replace(told, '"first":70', mood)"#;

/// No invented text of a registry reaches a session unchanged.
fn one_garbled_entry_takes_no_other_tag_with_it(cluster: &mut Cluster) -> Result<()> {
    let mut client = liar(cluster, GARBLED)?;
    cluster.registry.set_mood(r#""first":"\u001b[31m\u0007","rest":1"#)?;
    cluster.create("bad", "start => 7000000000, step => 10, max_step => 10")?;
    wait_as_long_as_it_takes(&mut client)?;
    let mut other = cluster.session()?;
    wait_at_most(&mut other, Duration::from_secs(2))?;
    for _ in 0..5 {
        let (taken, error) = refused_with(&mut other, "bad", &[NAME, "is described in an invalid way"])?;
        assert!(taken.is_empty(), "ids of one that is garbled");
        assert!(!said(&error).replace('\n', "").contains(char::is_control), "{:?}", said(&error));
        // Each time, the node also asks for the garbled tag again.
        assert_eq!(take(&mut client, "t", 30)?.len(), 30);
    }
    assert_eq!(
        registry_status::<i64>(&mut client, NAME, "failures::bigint")?,
        0,
        "it is not the registry that fails"
    );
    cluster.registry.set_mood("")?;
    wait::until(TIMEOUT, "an id of the tag that was garbled", || Ok(next(&mut other, "bad").ok()))?;
    Ok(())
}

/// The registry sends a text of hundreds of megabytes as a row, as an error with all of its parts, and as notices.
fn an_answer_of_hundreds_of_megabytes_costs_a_node_little(cluster: &mut Cluster) -> Result<()> {
    const MOST_KB: u64 = 200_000;
    let size: i64 = if full() { 900_000_000 } else { 400_000_000 };
    let mut client = liar(cluster, "repeat(substr(mood, 1, 1), substr(mood, 2)::integer)")?;
    client.run("set snowflake_ids.segment_wait_timeout = '40s'")?;
    let mut highest = 0;
    for letter in ["x", "\u{7}", "["] {
        cluster.registry.set_mood(&format!("{letter}{size}"))?;
        let failures: i64 = registry_status(&mut client, NAME, "failures::bigint")?;
        let mut caller = cluster.session()?;
        caller.run("set snowflake_ids.segment_wait_timeout = '500ms'")?;
        exhaust(&mut caller, "t")?;
        wait::until_true("the registry's answer to be refused", || {
            if let Some(pid) = client
                .column::<i32>(&format!("select pid from pg_stat_activity where backend_type = '{WORKER}'"))?
                .first()
            {
                highest = highest.max(memory(*pid, "VmHWM")?.unwrap_or(0));
            }
            Ok(registry_status::<i64>(&mut client, NAME, "failures::bigint")? > failures)
        })?;
        highest = highest.max(memory(process(&mut client, WORKER)?, "VmHWM")?.unwrap_or(0));
        cluster.registry.set_mood("")?;
        wait::until(TIMEOUT, "an id", || Ok(next(&mut client, "t").ok()))?;
    }
    println!("the worker had {highest} kB at most");
    assert!(highest > 1_000 && highest < MOST_KB, "the worker had {highest} kB at most");
    becomes(&mut client, NAME, "up")?;
    assert!(row::<i64>(&mut cluster.registry.connect("postgres")?, "t", "max_id")? > 0);
    Ok(())
}

/// Replaces a list of tags by one of fifteen megabytes, with tags that no list before had.
const ENDLESS: &str = r#"regexp_replace(told, '"Tags":\[.*\]', '"Tags":[' || (
    select string_agg(format('{"tag":"%s","increment":1,"remainder":0,"more":"%s"}', gen_random_uuid(), repeat('x', 1000000)), ',')
    from generate_series(1, 15)) || ']')"#;

/// A node that leaves reads the registry's tags, and does without them if the list is too long.
fn a_list_of_tags_without_an_end_is_given_up(cluster: &mut Cluster) -> Result<()> {
    cluster.registry.lies("registry_take_over", ENDLESS)?;
    let mut client = cluster.session()?;
    cluster.registry.set_mood("endless")?;
    client.run("select snowflake_ids.use_local_registry()")?;
    cluster.registry.set_mood("")?;
    client.run(JOIN)
}

#[test]
fn nothing_that_a_registry_makes_up_is_believed() -> Result<()> {
    Cluster::cases(
        1,
        cases![
            a_registry_that_makes_a_tag_dated_and_back_repeats_no_id,
            a_tag_that_an_operator_makes_dated_is_refused_until_that_is_meant,
            one_garbled_entry_takes_no_other_tag_with_it,
            an_answer_of_hundreds_of_megabytes_costs_a_node_little,
            a_list_of_tags_without_an_end_is_given_up
        ],
    )
}
