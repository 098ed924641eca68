//! Handing rows over to registries.

use super::error::HandoverError;
use super::host::{Handed, NodeTables, Registries};
use super::page::pages;
use super::row::tag_of;
use crate::registry::link::Site;
use crate::registry::wire::{ReceivedTag, RequestBody, ResponseBody};
use crate::sequence::reservation::Reached;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A transaction at a registry.
pub type Begun<'s, R> = (&'s Site, <R as Registries>::Block);

/// Begins a transaction at each registry. One that is set back from then on ends it.
pub fn begin<'s, H: NodeTables, R: Registries>(
    there: &mut R,
    sites: &'s [Site],
) -> Handed<Vec<Begun<'s, R>>, H, R> {
    let begin = |site: &'s Site| match there.begin(site, sites.len()) {
        Ok(block) => Ok((site, block)),
        Err(error) => Err(HandoverError::There { server: site.server.clone(), error }),
    };
    sites.iter().map(begin).collect()
}

/// Hands rows over, in the order of their tags: where one registry cannot take them, none has. All of a page before the next,
/// so that no registry waits for long. Each compares its own rows with what was received from it before it changes them.
pub fn give<H: NodeTables, R: Registries>(
    there: &mut R,
    mut begun: Vec<Begun<'_, R>>,
    rows: &[Box<RawValue>],
    received: &[(String, ReceivedTag)],
) -> Handed<(), H, R> {
    let of = begun.len();
    let mut left: Vec<BTreeMap<&str, Reached>> =
        begun.iter().map(|(site, _)| received_of(received, site)).collect();
    let failed = |site: &Site| {
        let server = site.server.clone();
        |error| HandoverError::There { server, error }
    };
    for page in pages(rows) {
        let tags: Vec<String> = page.iter().filter_map(|row| tag_of(row)).collect();
        for ((site, block), left) in begun.iter_mut().zip(&mut left) {
            // With the first row of each tag: others may come with the next page.
            let compared = tags.iter().filter_map(|tag| left.remove_entry(tag.as_str()));
            let received =
                compared.map(|(tag, reached)| ReceivedTag { tag: tag.to_owned(), reached }).collect();
            let ask = RequestBody::HandOver { rows: page.to_vec(), received, share: site.share(of) };
            let server = site.server.clone();
            match there.ask_in(block, ask).map_err(failed(site))?.said {
                ResponseBody::HandedOver(None) => {}
                ResponseBody::HandedOver(Some((tag, unfit))) => {
                    return Err(HandoverError::Unfit { server, tag, unfit });
                }
                _ => return Err(HandoverError::Garbled { server }),
            }
        }
    }
    for (site, block) in begun {
        there.commit(block).map_err(failed(site))?;
    }
    Ok(())
}

/// Returns how far each tag was received from this registry. What came from another one, as from its predecessor before
/// an upgrade, says nothing of its rows.
fn received_of<'r>(received: &'r [(String, ReceivedTag)], site: &Site) -> BTreeMap<&'r str, Reached> {
    let is_its = |identity: &str| identity == site.seen.identity;
    let its = received.iter().filter(|(identity, _)| is_its(identity));
    its.map(|(_, ReceivedTag { tag, reached })| (tag.as_str(), *reached)).collect()
}
