//! Another layout for the server itself, at its next start.

use super::marks::{Marks, OtherLayout};
use super::{Here, State};
use crate::guard::{Guard, holds};
use crate::id::Node;
use crate::layout::change::first_above;
use crate::layout::{Field, Layout};
use crate::lease::Lease;
use std::mem::replace;

impl State {
    /// Notes the layout that the server is to have at its next start.
    pub fn change_layout(&mut self, next: &Layout) {
        self.next_layout = Some(next.to_string());
    }

    /// Goes on in the layout that was noted, if the server was started with it: above all ids of the one before, whose marks
    /// are kept for generators that still issue in it.
    pub(super) fn take_next_layout(&mut self, here: &Here) {
        let next = self.next_layout.as_ref().and_then(|next| next.parse::<Layout>().ok());
        let Ok(old) = self.layout.parse::<Layout>() else { return };
        if next != Some(here.layout) || old == here.layout || !self.is_of_cluster(here) {
            return;
        }
        let Some(first) = first_above(&old, &here.layout, self.own.highest()) else { return };
        let (known, rollback) = match self.others.iter().position(|other| other.layout == here.layout) {
            Some(index) => {
                let other = self.others.swap_remove(index);
                (other.of, other.rollback)
            }
            None => (Marks { floor: here.layout.position_from(self.others_floor), ..Marks::default() }, 0),
        };
        let former = self.node.map_or(0, |node| node.rollback);
        self.keep_layout(OtherLayout {
            layout: old,
            rollback: former,
            used: here.clock.wall,
            of: replace(&mut self.own, known),
        });
        if holds(Guard::ChangeRises) {
            self.own.rise(first);
            self.own.raise_floor(first);
        }
        self.node = self.node.map(|node| Node { rollback, ..node });
        let fits = |lease: &Lease| here.layout.check(Field::Worker, lease.worker.into()).is_ok();
        match &mut self.lease {
            Some(lease) if fits(lease) => lease.start = lease.start_in(&here.layout, &old),
            Some(_) => self.forget_lease(),
            None => {}
        }
        self.layout = here.layout.to_string();
        self.next_layout = None;
    }
}
