//! The layouts beside the server's own, in which named generators issue: each with marks of its own.

use super::marks::{Mark, Marks, OtherLayout};
use super::{Here, OF_ANOTHER, State};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::id::Node;
use crate::layout::change::first_above;
use crate::layout::{Field, Layout};
use crate::position::Position;
use std::time::Duration;

/// The most layouts whose marks are kept. What has to go of them raises the floor of all that are not there.
const MAX_OTHERS: usize = 64;

/// How long after the last id of a layout worker ids are leased that fit it.
const IN_USE: Duration = Duration::from_hours(7 * 24);

/// How old a note that ids of a layout are asked for becomes before it is made anew: asking costs no write each time.
const NOTED: Duration = Duration::from_mins(10);

impl State {
    /// Whether it is the server's own layout.
    fn is_own(&self, layout: &Layout) -> bool {
        self.layout.parse().is_ok_and(|own: Layout| own == *layout)
    }

    pub(super) fn other(&self, layout: &Layout) -> Option<&OtherLayout> {
        self.others.iter().find(|other| other.layout == *layout)
    }

    /// What is kept of another layout than the server's own, from now on.
    fn other_mut(&mut self, layout: &Layout, at: UnixMicros) -> &mut OtherLayout {
        let found = self.others.iter().position(|other| other.layout == *layout);
        let index = found.unwrap_or_else(|| {
            self.drop_layouts(MAX_OTHERS - 1);
            self.others.push(OtherLayout::new(*layout, self.others_floor, at));
            self.others.len() - 1
        });
        &mut self.others[index]
    }

    /// Keeps so many layouts, those that were used last.
    fn drop_layouts(&mut self, most: usize) {
        while self.others.len() > most {
            let last = self.others.iter().enumerate().min_by_key(|(_, other)| other.used);
            let Some((index, _)) = last else { return };
            let dropped = self.others.swap_remove(index);
            self.others_floor = self.others_floor.max(dropped.end());
            // A node that is another server's is that in all layouts.
            let of_another = dropped.of.marks.iter().filter(|mark| mark.is_of_another());
            for Mark { node, .. } in of_another {
                self.own.set(*node, OF_ANOTHER);
            }
        }
    }

    pub(super) fn all_marks(&self) -> impl Iterator<Item = &Mark> {
        self.own.marks.iter().chain(self.others.iter().flat_map(|other| &other.of.marks))
    }

    pub(super) fn all_marks_mut(&mut self) -> impl Iterator<Item = &mut Mark> {
        self.own.marks.iter_mut().chain(self.others.iter_mut().flat_map(|other| &mut other.of.marks))
    }

    /// The node that issues in a layout: the server's, with a rollback value of the layout's.
    pub fn node_in(&self, layout: &Layout) -> Option<Node> {
        let node = self.node?;
        if self.is_own(layout) {
            return Some(node);
        }
        let rollback = self.other(layout).map_or(0, |other| other.rollback);
        Some(Node { rollback, ..node })
    }

    /// How far a node may have issued in a layout: a server that issues as that node begins here.
    pub fn mark_in(&self, layout: &Layout, node: Node) -> Position {
        let Ok(own) = self.layout.parse::<Layout>() else { return Position::MAX };
        if own == *layout {
            return self.mark(node);
        }
        let lease = self.lease.as_ref().filter(|lease| lease.is_of(node) && holds(Guard::OthersStart));
        let lease = lease.map_or(Position::ZERO, |lease| lease.start_in(layout, &own));
        let unknown = || layout.position_from(self.others_floor);
        self.other(layout).map_or_else(unknown, |other| other.of.of(node)).max(lease)
    }

    /// `at`: when ids of the layout were asked for last.
    pub(super) fn set_mark(&mut self, layout: &Layout, node: Node, position: Position, at: UnixMicros) {
        if self.is_own(layout) {
            return self.own.set(node, position);
        }
        let other = self.other_mut(layout, at);
        other.used = at;
        other.of.set(node, position);
    }

    pub(super) fn set_rollback(&mut self, layout: &Layout, rollback: u32, at: UnixMicros) {
        if self.is_own(layout) {
            self.node = self.node.map(|node| Node { rollback, ..node });
        } else {
            self.other_mut(layout, at).rollback = rollback;
        }
    }

    /// Notes that ids of a layout are asked for, so that the next worker id that is leased fits it. Whether that is news, which
    /// is to be written.
    pub fn want(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        let is_noted = self.other(layout).is_some_and(|other| other.used.plus(NOTED) > at);
        if is_noted || self.is_own(layout) {
            return false;
        }
        self.other_mut(layout, at).used = at;
        true
    }

    /// The largest worker id that all layouts in use have room for. `layout` is the server's own.
    pub fn worker_limit(&self, layout: &Layout, at: UnixMicros) -> u32 {
        let most = |layout: &Layout| u32::try_from(layout.max(Field::Worker)).unwrap_or(u32::MAX);
        let in_use = self.others.iter().filter(|other| other.used.plus(IN_USE) > at);
        in_use.map(|other| most(&other.layout)).fold(most(layout), u32::min)
    }

    /// Whether ids of some layout come to an instant. `own` is the server's own layout.
    pub fn comes_to(&self, at: UnixMicros, own: &Layout) -> bool {
        let comes = |layout: &Layout| {
            self.node_in(layout).is_some_and(|node| self.mark_in(layout, node) >= layout.position_at(at))
        };
        comes(own) || self.others.iter().any(|other| comes(&other.layout))
    }

    /// Makes the layout of here and now the server's own, if that is what an operator has said it is to be: the marks of
    /// the former are kept, and ids of the new one begin above all of them.
    pub(super) fn change_layout(&mut self, here: &Here) {
        let said = self.next_layout.as_ref().and_then(|next| next.parse::<Layout>().ok());
        let Ok(former) = self.layout.parse::<Layout>() else { return };
        if !self.is_of_cluster(here) || former == here.layout || said != Some(here.layout) {
            return;
        }
        let Some(first) = first_above(&former, &here.layout, self.own.highest()) else { return };
        let known = self.others.iter().position(|other| other.layout == here.layout);
        let mut next = match known {
            Some(known) => self.others.swap_remove(known),
            None => OtherLayout::new(here.layout, self.others_floor, UnixMicros(0)),
        };
        if holds(Guard::LayoutRises) {
            next.of.rise(first);
            next.of.raise_floor(first);
        }
        if let Some(lease) = &mut self.lease {
            lease.start = lease.start_in(&here.layout, &former);
        }
        let rollback = self.node.map_or(0, |node| node.rollback);
        let of = std::mem::replace(&mut self.own, next.of);
        self.node = self.node.map(|node| Node { rollback: next.rollback, ..node });
        self.layout = here.layout.to_string();
        self.next_layout = None;
        self.drop_layouts(MAX_OTHERS - 1);
        self.others.push(OtherLayout { layout: former, rollback, used: UnixMicros(0), of });
    }

    /// All layouts whose marks count here but for the server's own of now.
    pub fn layouts_beside(&self, here: &Here) -> Vec<Layout> {
        let own = self.layout.parse().ok();
        let all = self.others.iter().map(|other| other.layout).chain(own);
        all.filter(|layout| *layout != here.layout && self.is_of_cluster(here)).collect()
    }

    /// Has every node begin at or above a position of a layout that has no mark in it.
    pub fn begin_above(&mut self, layout: &Layout, above: Position) {
        if self.is_own(layout) {
            self.own.raise_floor(above);
        } else if above > Position::ZERO {
            let used = self.other(layout).map_or(UnixMicros(0), |other| other.used);
            self.other_mut(layout, used).of.raise_floor(above);
        }
    }

    /// Has every node begin at or above an instant that has no mark, in all layouts but the server's own.
    pub fn raise_all(&mut self, above: UnixMicros) {
        self.others_floor = self.others_floor.max(above);
        for other in &mut self.others {
            other.of.raise_floor(other.layout.position_from(above));
        }
    }

    /// The marks of a layout.
    pub fn marks_of(&self, layout: &Layout) -> Option<&Marks> {
        if self.is_own(layout) { Some(&self.own) } else { self.other(layout).map(|other| &other.of) }
    }
}
