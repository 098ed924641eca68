//! The surroundings of a simulated server's process: the core's traits in memory. At each call of a trait, other processes may
//! run before the process continues, and the server may end.

use super::disk::File;
use super::event::Event;
use super::process::{Pause, Wait};
use super::server::{Live, MAX_JUMP, MAX_SKEW, RESERVE, SECOND, Server, time};
use super::sim::Sim;
use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::issuer::{self, Cluster, Issuer, IssuerError, Issuing, Settings};
use snowflake_ids_core::server::lease::LeaseError;
use snowflake_ids_core::server::state::{DataDirectory, FileIdentity};
use snowflake_ids_core::session::{Caller, SessionError};
use snowflake_ids_core::tag::tickets::Answer;
use snowflake_ids_core::{Clock, ClockRollback, UnixMicros};
use std::cell::Cell;
use std::io;
use std::ops::DerefMut;
use std::rc::Rc;
use std::time::Duration;

/// How long a session waits for its lease, and for its clock to advance.
const LIMIT: i64 = 5 * SECOND;

pub struct Host<'a> {
    pub sim: Rc<Sim>,
    pub server: Rc<Server>,
    pub live: Rc<Live>,
    pause: &'a Pause,
    /// The time at which the session's call stops waiting.
    until: Cell<i64>,
}

impl<'a> Host<'a> {
    pub fn new(sim: Rc<Sim>, server: Rc<Server>, live: Rc<Live>, pause: &'a Pause) -> Self {
        Self { sim, server, live, pause, until: Cell::new(0) }
    }

    /// The issuer of the server.
    pub fn issuer(&self) -> Issuer<'_, &Self> {
        Issuer { shared: &self.live.shared, host: self }
    }

    /// Stops at a call to the process's surroundings, possibly for good.
    pub fn call(&self) {
        if self.sim.chance.once_in(3) {
            self.pause.suspend(Wait::Turn);
        }
    }

    /// Stops at an access to the disk.
    fn disk(&self) {
        self.pause.suspend(Wait::Turn);
    }

    pub fn sleep_until(&self, at: i64) {
        self.pause.suspend(Wait::Until(at));
    }

    pub fn rest(&self, time: i64) {
        self.sleep_until(self.sim.now() + time);
    }

    pub fn send(&self, delay: i64, event: Event) {
        self.sim.send(delay, event);
    }

    /// Begins a call of a session.
    pub fn begin_call(&self) {
        self.until.set(self.sim.now() + LIMIT);
    }

    /// Records an error that needs an operator's decision. Success clears the record and returns the value.
    pub fn record<T>(&self, done: Result<T, IssuerError>) -> Option<T> {
        match done {
            Ok(done) => {
                self.live.trouble.replace(None);
                Some(done)
            }
            Err(error) => {
                if let IssuerError::Untrusted(error) = error {
                    self.sim.record_damage(&error);
                    self.live.trouble.replace(Some(error));
                }
                None
            }
        }
    }

    /// Records an error of a session's call that needs an operator's decision.
    pub fn record_call(&self, error: SessionError) {
        if let SessionError::Issuer(error) = error {
            self.record::<()>(Err(error));
        }
    }
}

impl Host<'_> {
    /// May suspend the process for a while.
    fn preempt(&self) {
        let chance = &self.sim.chance;
        if chance.once_in(16) {
            self.rest(chance.between(1, if chance.once_in(8) { 3 * SECOND } else { 6_000 }));
        }
    }
}

/// The wall clock as a session reads it. The session may be suspended before and after the reading.
impl Clock for &Host<'_> {
    fn now(&self) -> UnixMicros {
        self.preempt();
        let now = self.server.clocks.wall(self.sim.now());
        self.preempt();
        now
    }
}

impl Host<'_> {
    fn set_new(&self, file: File) -> Rc<File> {
        let file = Rc::new(file);
        self.server.disk.borrow_mut().new = Some(Rc::clone(&file));
        file
    }
}

impl issuer::Host for &Host<'_> {
    type NewFile = Rc<File>;

    fn read(&self) -> io::Result<Option<(Vec<u8>, FileIdentity)>> {
        self.call();
        Ok(self
            .server
            .disk
            .borrow()
            .file
            .as_ref()
            .map(|file| (file.text.clone().into_bytes(), file.file_identity())))
    }

    fn has_marker_file(&self) -> io::Result<bool> {
        self.call();
        Ok(self.server.disk.borrow().marker_file)
    }

    fn create(&self) -> io::Result<(Rc<File>, FileIdentity)> {
        self.call();
        let inode = self.server.files.get() + 1;
        self.server.files.set(inode);
        let file = File { text: String::new(), inode, synced: false };
        let file_identity = file.file_identity();
        Ok((self.set_new(file), file_identity))
    }

    fn fill(&self, file: &mut Rc<File>, text: &str) -> io::Result<()> {
        self.call();
        *file = self.set_new(File { text: text.into(), ..(**file).clone() });
        Ok(())
    }

    fn sync(&self, file: Rc<File>) -> io::Result<()> {
        self.disk();
        self.set_new(File { synced: true, ..(*file).clone() });
        Ok(())
    }

    fn rename(&self) -> io::Result<()> {
        self.call();
        let mut disk = self.server.disk.borrow_mut();
        let new = disk.new.take().ok_or(io::ErrorKind::NotFound)?;
        disk.file = Some((*new).clone());
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk();
        let disk = &mut *self.server.disk.borrow_mut();
        disk.named.clone_from(&disk.file);
        Ok(())
    }

    fn marker_file(&self) -> io::Result<()> {
        self.call();
        self.server.disk.borrow_mut().marker_file = true;
        Ok(())
    }

    fn keep_rejected(&self) -> io::Result<()> {
        self.call();
        Ok(())
    }

    fn data_directory(&self) -> io::Result<DataDirectory> {
        let home = self.server.number.to_string();
        Ok(DataDirectory {
            identity: home.clone(),
            host: home.clone(),
            directory: home,
            ..Default::default()
        })
    }

    fn reading(&self) -> Reading {
        self.call();
        self.server.clocks.reading(self.sim.now())
    }

    fn lock(&self) -> impl DerefMut<Target = Issuing> {
        loop {
            if let Ok(held) = self.live.issuing.try_borrow_mut() {
                return held;
            }
            self.rest(self.sim.chance.between(1, 40_000));
        }
    }

    fn cluster(&self) -> Cluster {
        Cluster {
            system_identifier: self.server.system_identifier.get(),
            timeline: self.server.timeline.get(),
            replayed: self.server.replayed.get(),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            rules: self.server.rules(),
            reserve: time(RESERVE),
            max_clock_jump: time(MAX_JUMP),
            max_clock_skew: time(MAX_SKEW),
            policy: self.server.policy.get(),
        }
    }

    fn token(&self) -> i64 {
        self.sim.chance.next().cast_signed()
    }

    fn database(&self) -> u32 {
        1
    }

    fn show_origin(&self, _: &str) {}
}

impl Caller for &Host<'_> {
    fn count(&self, _: u64) {}

    fn lease(&self, other: bool) -> Result<(), LeaseError> {
        let requests = &self.live.requests;
        if other {
            requests.want_another(self.live.shared.generation());
        }
        let ticket = requests.request.ask();
        while self.sim.now() < self.until.get() {
            match requests.request.answer_to(ticket) {
                Some(Answer::Supplied) => return Ok(()),
                Some(_) => break,
                None => self.rest(200_000),
            }
        }
        Err(LeaseError::yet("", ""))
    }

    fn trouble(&self) -> Option<LeaseError> {
        None
    }

    fn call_launcher(&self) {}

    fn rollback(&self) -> ClockRollback {
        self.server.rollback.get()
    }

    fn left(&self) -> Duration {
        Duration::from_micros((self.until.get() - self.sim.now()).max(0).unsigned_abs())
    }

    fn sleep(&self, time: Duration) {
        self.rest(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
    }
}
