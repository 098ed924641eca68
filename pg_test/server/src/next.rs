//! A made-up next version, for tests of upgrades until there is a real one. Its former version is the present install script with
//! a few more objects, which the next version changes in all the ways that an upgrade script has to deal with.

use crate::installation::{Installation, released};
use anyhow::{Context, Result, anyhow};
use snowflake_ids_install_script::upgrade;

/// The version that a database has before its upgrade.
pub const FORMER: &str = "former";
/// The version that the database gets.
pub const NEXT: &str = "next";

/// Where the SQL of the sources ends: rights and comments follow.
const END: &str = "-- finalize\n";

/// The rights on the objects of either version.
const FORMER_RIGHTS: &str = "
    GRANT EXECUTE ON FUNCTION snowflake_ids.trial_body, snowflake_ids.trial_renamed(integer), snowflake_ids.trial_symbol() TO PUBLIC;
    GRANT SELECT ON snowflake_ids.trial, snowflake_ids.trial_grown, snowflake_ids.trial_retyped TO PUBLIC;";
const NEXT_RIGHTS: &str = "
    GRANT EXECUTE ON FUNCTION snowflake_ids.trial_body, snowflake_ids.trial_renamed(integer), snowflake_ids.trial_new() TO PUBLIC;
    GRANT SELECT ON snowflake_ids.trial, snowflake_ids.trial_grown, snowflake_ids.trial_retyped, snowflake_ids.trial_added TO PUBLIC;";

/// The first function that administrators of tags may call, and another one before it.
const ADMINISTERED: &str = "('tags', 'FUNCTION snowflake_ids.segment_create,";
const NEXT_ADMINISTERED: &str =
    "('tags', 'FUNCTION snowflake_ids_internal.trial_tag, snowflake_ids.segment_create,";

/// An upgrade, by the versions that it leads from and to.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// The version that a database has.
    pub from: String,
    /// The version that the database gets.
    pub to: String,
}

/// Adds the scripts of the upgrade to the made-up next version, and the install scripts of all releases. Returns all upgrades.
pub fn put_upgrades(installation: &Installation) -> Result<Vec<Upgrade>> {
    let present = installation.script(env!("CARGO_PKG_VERSION"))?;
    let with = |objects: &str, rights: &str| {
        let (code, last) = present.split_once(END).context("the install script has no end")?;
        Ok::<_, anyhow::Error>([code, objects, END, last, rights].concat())
    };
    let former = with(include_str!("next/former.sql"), FORMER_RIGHTS)?;
    let next = with(include_str!("next/next.sql"), NEXT_RIGHTS)?;
    let next = next.replacen(ADMINISTERED, NEXT_ADMINISTERED, 1);
    anyhow::ensure!(next.contains(NEXT_ADMINISTERED), "administrators of tags may call other functions");
    let script = upgrade::script(&former, &next, &[include_str!("next/step.sql").to_owned()])
        .map_err(|missing| anyhow!("the step lacks: {}", missing.join("\n")))?;
    installation.put_script(FORMER, &former)?;
    installation.put_script(NEXT, &next)?;
    installation.put_script(&format!("{FORMER}--{NEXT}"), &script)?;
    let mut upgrades = vec![Upgrade { from: FORMER.to_owned(), to: NEXT.to_owned() }];
    for (version, script) in released()? {
        installation.put_script(&version, &script)?;
        upgrades.push(Upgrade { from: version, to: env!("CARGO_PKG_VERSION").to_owned() });
    }
    Ok(upgrades)
}
