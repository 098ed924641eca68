//! The registry's rows, and one node's way to them.

use super::world::{SERIES, World};
use snowflake_ids_core::clock::UnixMicros;
use snowflake_ids_core::failover::Health;
use snowflake_ids_core::number_registry::{FoundRow, KeyRow, NumberRegistry, SharedSeries, reserve_numbers};
use snowflake_ids_core::registry_error::{Complaint, ConnectionError, RegistryError};
use snowflake_ids_core::registry_link::{RegistryLink, RegistryNotes, Site};
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::RowKey;
use snowflake_ids_core::tag_rows::LockWait;
use snowflake_ids_core::wire::{
    self, NumbersRequest, Request, RequestBody, Response, ResponseBody, SharedKey, SharedTerms,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Where the registry's series begin: their ids are other ones than at nodes.
const ELSEWHERE: i64 = 100;

#[derive(Clone, Default)]
pub struct Table {
    pub rows: BTreeMap<RowKey, KeyRow>,
    versions: i64,
}

pub fn there() -> wire::Registry {
    wire::Registry { identity: "registry".into(), timeline: 1 }
}

pub fn site() -> Site {
    Site { position: 0, server: "reg".into(), seen: there() }
}

pub fn terms(series: i64) -> SharedTerms {
    let is_dated = series % 2 == 1;
    SharedTerms {
        key_type: "bigint".into(),
        start: 1,
        reset: is_dated.then(|| "day".into()),
        time_zone: if is_dated { "UTC".into() } else { String::new() },
    }
}

/// The registry's tables in a transaction; some of the rows are locked by others.
struct Tables<'w> {
    world: &'w mut World,
}

impl NumberRegistry for Tables<'_> {
    type Error = ();

    fn shared_series(&mut self, name: &str) -> Result<SharedSeries, ()> {
        let series: i64 = name.strip_prefix("series ").unwrap().parse().unwrap();
        if !self.world.quiet && self.world.chance.once_in(40) {
            return Ok(SharedSeries::Locked);
        }
        let max_step = self.world.max_step;
        Ok(SharedSeries::There {
            id: ELSEWHERE + series,
            terms: terms(series),
            max_value: 1_000_000,
            max_step,
        })
    }

    fn key(&mut self, key: &SharedKey) -> Option<Key> {
        key.to_key(|text| Some(text.into()))
    }

    fn read(&mut self, rows: &[RowKey], wait: LockWait) -> Result<Vec<FoundRow>, ()> {
        let is_locked = || wait == LockWait::Skip && !self.world.quiet && self.world.chance.once_in(20);
        let found = |row: &RowKey| match self.world.table.rows.get(row) {
            Some(_) if is_locked() => FoundRow::Locked,
            Some(row) => FoundRow::There(*row),
            None => FoundRow::None,
        };
        Ok(rows.iter().map(found).collect())
    }

    fn write(&mut self, rows: &[(RowKey, KeyRow, bool)]) -> Result<Vec<bool>, ()> {
        let mut done = Vec::new();
        for (row, says, is_new) in rows {
            let is_done = !is_new || self.world.quiet || !self.world.chance.once_in(20);
            done.push(is_done);
            if is_done {
                self.world.table.rows.insert(row.clone(), *says);
            }
        }
        Ok(done)
    }

    fn random(&mut self) -> i64 {
        // Those of a table that was set back are none of the ones before.
        self.world.table.versions = self.world.chance.next().cast_signed();
        self.world.table.versions
    }
}

/// Does what a request asks.
pub fn serve(world: &mut World, asked: &NumbersRequest) -> Response {
    let today = world.today;
    let numbers = reserve_numbers(&mut Tables { world }, asked, today).unwrap();
    Response { registry: there(), clock: UnixMicros(0), said: ResponseBody::ReservedNumbers(numbers) }
}

pub struct Link<'w> {
    pub world: &'w RefCell<World>,
    pub step: &'w dyn Fn(),
}

impl RegistryLink for Link<'_> {
    fn ask(&mut self, _: &Site, ask: RequestBody, _: Duration) -> Result<Response, RegistryError> {
        let timeout = Duration::from_millis(100);
        let request = Request { version: wire::VERSION, registry: Some(there()), timeout, ask };
        let asked = Request::accept(&request.to_text().unwrap()).unwrap().unwrap();
        let RequestBody::ReserveNumbers(asked) = asked.ask else { panic!("{:?} is asked", asked.ask) };
        (self.step)();
        let silent = || RegistryError::Failed(ConnectionError::Silent(timeout));
        let mut world = self.world.borrow_mut();
        if world.is_away {
            return Err(RegistryError::Failed(ConnectionError::Unreachable("away".into())));
        }
        if !world.calm && !world.quiet {
            match world.chance.below(12) {
                0 => return Err(silent()),
                1 => {
                    world.late.push(*asked);
                    return Err(silent());
                }
                2 => {
                    serve(&mut world, &asked);
                    return Err(silent());
                }
                _ => {}
            }
        }
        let response = serve(&mut world, &asked);
        world.tell(|| format!("  {asked:?}: {:?}", response.said));
        drop(world);
        (self.step)();
        Ok(Response::accept(&response.to_text().unwrap()).unwrap())
    }

    fn notes(&self, _: &Site) -> impl RegistryNotes {
        Noted(self.world)
    }
}

struct Noted<'w>(&'w RefCell<World>);

impl RegistryNotes for Noted<'_> {
    fn health(&self) -> Health {
        Health::default()
    }
    fn asked(&self) {}
    fn given_up(&self) {}
    fn answered(&self, _: Duration) {}
    fn failed(&self, complaint: &Complaint) {
        if complaint.why.contains("makes no sense") {
            self.0.borrow_mut().fault(complaint.why.clone());
        }
    }
    fn complain(&self, _: &Complaint) {}
    fn is_news(&self, _: &Complaint) -> bool {
        true
    }
    fn be_content(&self) {}
}

/// Something happens to the registry.
pub fn trouble(world: &RefCell<World>) {
    let mut world = world.borrow_mut();
    match world.chance.below(4) {
        0 => world.is_away = !world.is_away,
        1 | 2 if !world.late.is_empty() => {
            let at = world.chance.below(world.late.len());
            let late = world.late.swap_remove(at);
            let answer = serve(&mut world, &late);
            world.tell(|| format!("late: {late:?}: {:?}", answer.said));
        }
        // What other nodes received it cannot know.
        3 if world.nodes.len() == 1 => {
            if world.chance.once_in(2) {
                let earlier = world.earlier.clone();
                world.tell(|| "the registry is set back".into());
                world.table = earlier;
            } else {
                world.earlier = world.table.clone();
            }
        }
        _ => {}
    }
}

/// What all rows say of a key without periods.
pub fn last(table: &Table, key: i64) -> i64 {
    let row = RowKey { series: ELSEWHERE + SERIES[0], key: Key::Bigint(key) };
    table.rows.get(&row).map_or(0, |row| row.reached.last)
}
