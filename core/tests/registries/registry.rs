//! A registry: its rows, the server that has them, and what others have of it.

use super::guards::{Guard, Guards};
use super::world::{TAGS, Tag};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::definition::Definition;
use snowflake_ids_core::reservation::{Outcome, Row, Share, Unfit, Wish};
use snowflake_ids_core::segment::Period;
use snowflake_ids_core::wire::{self, Request, RequestBody, Response, ResponseBody, Stranger};
use std::collections::BTreeMap;

/// What the terms of every tag are at first.
pub const DEFINITION: Definition = Definition {
    max_id: 0,
    start: 1,
    step: 4,
    max_step: 16,
    increment: 1,
    remainder: 0,
    max_value: i64::MAX,
};

/// A row of the table of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub definition: Definition,
    pub version: i64,
    /// The timeline of the last reservation.
    pub timeline: u32,
}

/// The table of tags.
pub type Rows = BTreeMap<Tag, Line>;

impl Line {
    pub fn new(timeline: u32) -> Self {
        Self { definition: DEFINITION, version: 0, timeline }
    }

    pub fn share(&mut self, share: Share) {
        self.definition.increment = share.of.into();
        self.definition.remainder = share.index.into();
    }

    pub fn raise(&mut self, max_id: i64) {
        self.definition.max_id = self.definition.max_id.max(max_id);
    }

    /// Its terms. On a later timeline it may lag behind what the former primary has reserved.
    pub fn definition_on(&self, timeline: u32, guards: Guards) -> Definition {
        let promoted = self.timeline < timeline && guards.keep(Guard::SkipAhead);
        if promoted { self.definition.skipped_ahead() } else { self.definition }
    }

    /// Reserves by the core's rules.
    pub fn reserve(&mut self, wish: &Wish, version: i64, timeline: u32, guards: Guards) -> Outcome {
        let definition = self.definition_on(timeline, guards);
        let row = Row {
            definition,
            period: Period::FOREVER,
            format: String::new(),
            version: self.version,
            life: 0,
        };
        let outcome = row.reserve(wish, version);
        if let Outcome::Reserved(reserved) = &outcome {
            self.definition.max_id = reserved.supply.range.last();
            (self.version, self.timeline) = (reserved.version, timeline);
        }
        outcome
    }
}

/// A tag's row as it is handed over.
#[derive(Serialize, Deserialize)]
pub struct Handed {
    pub tag: Tag,
    pub max_id: i64,
}

/// A server that is, or was, the registry.
#[derive(Clone)]
pub struct Server {
    pub who: wire::Registry,
    pub rows: Rows,
}

impl Server {
    pub fn new(identity: usize) -> Self {
        Self {
            who: wire::Registry { identity: format!("registry {identity}"), timeline: 1 },
            rows: Rows::new(),
        }
    }

    pub fn row(&mut self, tag: Tag) -> &mut Line {
        self.rows.entry(tag).or_insert(Line::new(self.who.timeline))
    }

    /// Answers; rows that it writes get versions from this one on.
    pub fn answer(&mut self, request: Request, version: i64, guards: Guards) -> Response {
        let refused = request.registry.and_then(|seen| self.who.check(&seen).err());
        let refused = refused.filter(|stranger| match stranger {
            Stranger::Another => guards.keep(Guard::Identity),
            Stranger::Former { .. } => guards.keep(Guard::Timeline),
        });
        let said = match (refused, request.ask) {
            (Some(stranger), _) => ResponseBody::Stranger(stranger),
            (None, RequestBody::HandOver { rows, share }) => {
                ResponseBody::HandedOver(self.take_over(&rows, share))
            }
            (None, RequestBody::Reserve(wants)) => {
                let tag = |tag: &String| TAGS.iter().position(|name| name == tag).unwrap();
                let timeline = self.who.timeline;
                let one = |(want, version): (&wire::ReserveRequest, i64)| {
                    self.row(tag(&want.tag)).reserve(&want.wish, version, timeline, guards)
                };
                ResponseBody::Reserved(wants.iter().zip(version..).map(one).collect())
            }
            (None, other) => panic!("nobody asks this: {other:?}"),
        };
        Response { registry: self.who.clone(), clock: UnixMicros(0), said }
    }

    /// Rows that it does not have are made; those that it has are raised. The timeline of a row is left as it is: what
    /// a reservation skips after a promotion is still to be skipped.
    fn take_over(&mut self, rows: &[Box<RawValue>], share: Option<Share>) -> Option<(String, Unfit)> {
        let mut unfit = None;
        for row in rows {
            let Handed { tag, max_id } = serde_json::from_str(row.get()).unwrap();
            let is_new = !self.rows.contains_key(&tag);
            let line = self.row(tag);
            line.raise(max_id);
            if let Some(share) = share {
                if is_new {
                    line.share(share);
                }
                let Definition { increment, remainder, .. } = line.definition;
                if !share.holds(increment, remainder) {
                    unfit = Some((TAGS[tag].to_owned(), Unfit::Share { share, increment, remainder }));
                }
            }
        }
        unfit
    }
}

/// What an operator has to mend, once it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is in an earlier state of itself.
    SetBack,
    /// It is a new one, made out of an earlier state.
    Dump,
    /// The terms of a row are not those of its share.
    Altered,
}

/// A registry, over all servers that ever were it.
pub struct Registry {
    pub primary: Server,
    /// The server that was the primary before, until when it can be reached.
    pub former: Option<(Server, u64)>,
    /// Earlier states of the primary that a standby may be in,
    pub past: Vec<Rows>,
    /// and those that it may be restored to.
    pub backups: Vec<Server>,
    /// The highest id of each tag that any of these servers knew of.
    pub highest: BTreeMap<Tag, i64>,
    pub hung_until: u64,
    pub down_until: u64,
    /// And since when.
    pub trouble: Option<(Trouble, u64)>,
}

impl Registry {
    pub fn new(identity: usize) -> Self {
        Self {
            primary: Server::new(identity),
            former: None,
            past: Vec::new(),
            backups: Vec::new(),
            highest: BTreeMap::new(),
            hung_until: 0,
            down_until: 0,
            trouble: None,
        }
    }

    pub fn works(&self, now: u64) -> bool {
        self.hung_until <= now && self.down_until <= now
    }

    pub fn is(&self, trouble: Trouble) -> bool {
        self.trouble.is_some_and(|(this, _)| this == trouble)
    }

    /// The primary commits; standbys follow.
    pub fn note(&mut self) {
        for (tag, line) in &self.primary.rows {
            let highest = self.highest.entry(*tag).or_default();
            *highest = line.definition.max_id.max(*highest);
        }
        self.past.push(self.primary.rows.clone());
        if self.past.len() > 40 {
            self.past.remove(0);
        }
    }

    /// An operator's statement: no standby is behind it.
    pub fn settle(&mut self) {
        self.past.clear();
        self.note();
    }

    /// States of standbys that lag by no more than what is skipped after a promotion.
    pub fn standbys(&self) -> Vec<&Rows> {
        let covers = |tag: &Tag, line: &Line, rows: &Rows| {
            rows.get(tag).is_some_and(|row| {
                let same = (row.definition.increment, row.definition.remainder)
                    == (line.definition.increment, line.definition.remainder);
                same && row.definition.skipped_ahead().max_id >= self.highest[tag]
            })
        };
        let all = |rows: &&Rows| self.primary.rows.iter().all(|(tag, line)| covers(tag, line, rows));
        self.past.iter().filter(all).collect()
    }
}
