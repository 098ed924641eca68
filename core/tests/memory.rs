//! A server in memory, with one process.

use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::issuer::{
    Cluster, GeneratorSlot, Host, Issuer, IssuerMemory, Issuing, Occupancy, Settings,
};
use snowflake_ids_core::server::lease::{Lease, LeaseError, Policy};
use snowflake_ids_core::server::state::{DataDirectory, FileIdentity, Identity, State};
use snowflake_ids_core::session::Caller;
use snowflake_ids_core::{ClockRollback, Layout, Rules, SequenceStart, UnixMicros};
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::DerefMut;
use std::time::Duration;

/// The clock and the state file, which survive the server's end.
pub struct Machine {
    now: Cell<UnixMicros>,
    since_boot: Cell<u64>,
    file: RefCell<Option<String>>,
}

impl Machine {
    pub fn new(now: UnixMicros) -> Self {
        Self { now: Cell::new(now), since_boot: Cell::new(1_000_000_000), file: RefCell::default() }
    }

    /// Sets the clock. The time since boot grows by the same amount if the clock moves forward.
    pub fn set(&self, now: UnixMicros) {
        let passed = now.0 - self.now.get().0;
        self.since_boot.set(self.since_boot.get() + u64::try_from(passed).unwrap_or(0));
        self.now.set(now);
    }

    /// Steps the clock, in no time.
    pub fn step(&self, now: UnixMicros) {
        self.now.set(now);
    }
}

pub struct Server<'a> {
    machine: &'a Machine,
    pub shared: IssuerMemory,
    pub issuing: RefCell<Issuing>,
    /// The calling database.
    pub database: Cell<u32>,
    /// How far ahead of the clock positions are reserved.
    pub settings: Cell<Duration>,
    pub switches: Cell<bool>,
    offered: RefCell<Option<Lease>>,
    /// The reason why no lease is offered.
    pub trouble: RefCell<Option<LeaseError>>,
    /// How often a lease was requested.
    pub asked: Cell<u32>,
    /// How often the state was written.
    pub written: Cell<u32>,
}

impl<'a> Server<'a> {
    pub fn start(machine: &'a Machine, layout: Layout, identity: Identity, slots: usize) -> Self {
        let (now, since_boot) = (machine.now.get(), machine.since_boot.get());
        let generators = (0..slots).map(|_| GeneratorSlot::default()).collect::<Vec<_>>().leak();
        Self {
            machine,
            shared: IssuerMemory::new(layout, identity, now, since_boot, None, generators),
            issuing: Issuing::new((0..slots).map(|_| Occupancy::default()).collect::<Vec<_>>().leak()).into(),
            database: Cell::new(1),
            settings: Cell::new(Duration::from_secs(3)),
            switches: Cell::new(false),
            offered: RefCell::default(),
            trouble: RefCell::default(),
            asked: Cell::new(0),
            written: Cell::new(0),
        }
    }

    pub fn issuer(&self) -> Issuer<'_, &Self> {
        Issuer { shared: &self.shared, host: self }
    }

    pub fn state(&self) -> State {
        State::from_text(self.machine.file.borrow().as_ref().unwrap().as_bytes()).unwrap()
    }

    pub fn put(&self, state: &State) {
        self.machine.file.replace(Some(state.to_text().unwrap()));
    }

    /// Sets the lease that the next request gets.
    pub fn offer(&self, lease: Lease) {
        self.offered.replace(Some(lease));
    }
}

impl Host for &Server<'_> {
    type NewFile = RefCell<String>;

    fn read(&self) -> io::Result<Option<(Vec<u8>, FileIdentity)>> {
        let file_identity = FileIdentity { inode: 1, at: None };
        Ok(self.machine.file.borrow().as_ref().map(|text| (text.clone().into_bytes(), file_identity)))
    }

    fn has_marker_file(&self) -> io::Result<bool> {
        Ok(self.machine.file.borrow().is_some())
    }

    fn create(&self) -> io::Result<(RefCell<String>, FileIdentity)> {
        Ok((RefCell::default(), FileIdentity { inode: 1, at: None }))
    }

    fn fill(&self, _: &mut RefCell<String>, text: &str) -> io::Result<()> {
        self.machine.file.replace(Some(text.into()));
        self.written.set(self.written.get() + 1);
        Ok(())
    }

    fn sync(&self, _: RefCell<String>) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn marker_file(&self) -> io::Result<()> {
        Ok(())
    }

    fn keep_rejected(&self) -> io::Result<()> {
        Ok(())
    }

    fn data_directory(&self) -> io::Result<DataDirectory> {
        Ok(DataDirectory {
            identity: "a".into(),
            host: "h".into(),
            directory: "/data".into(),
            ..Default::default()
        })
    }

    fn reading(&self) -> Reading {
        Reading { wall: self.machine.now.get(), boot: "b".into(), since_boot: self.machine.since_boot.get() }
    }

    fn lock(&self) -> impl DerefMut<Target = Issuing> {
        self.issuing.borrow_mut()
    }

    fn cluster(&self) -> Cluster {
        Cluster { system_identifier: 7, timeline: 1, replayed: None }
    }

    fn settings(&self) -> Settings {
        Settings {
            rules: Rules { max_drift: 60_000_000, start: SequenceStart::Zero },
            reserve: self.settings.get(),
            max_clock_jump: Duration::from_hours(1),
            max_clock_skew: Duration::from_secs(5),
            policy: Policy::Reuse,
        }
    }

    fn token(&self) -> i64 {
        21
    }

    fn database(&self) -> u32 {
        self.database.get()
    }

    fn show_origin(&self, _: &str) {}
}

impl Caller for &Server<'_> {
    fn count(&self, _: u64) {}

    fn lease(&self, _: bool) -> Result<(), LeaseError> {
        self.asked.set(self.asked.get() + 1);
        let Some(lease) = self.offered.take() else { return self.trouble().map_or(Ok(()), Err) };
        self.issuer().change(|state, _| state.take_up(lease)).unwrap();
        Ok(())
    }

    fn trouble(&self) -> Option<LeaseError> {
        self.trouble.borrow().clone()
    }

    fn call_launcher(&self) {}

    fn rollback(&self) -> ClockRollback {
        if self.switches.get() { ClockRollback::Switch } else { ClockRollback::Error }
    }

    fn left(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) {}
}
