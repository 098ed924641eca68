//! All rows with the same id.

/// How many places of an id are told apart.
pub const MAX_PLACES: usize = 8;

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Of which source.
    pub source: usize,
    /// In which of its tables.
    pub table: u32,
}

/// Where the rows with an id are, and how many in each place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The first of them.
    pub known: Vec<(Place, u64)>,
    /// How many rows are elsewhere.
    pub others: u64,
}

impl Places {
    fn add(&mut self, place: Place) {
        if let Some((_, rows)) = self.known.iter_mut().find(|(known, _)| *known == place) {
            *rows += 1;
        } else if self.known.len() < MAX_PLACES {
            self.known.push((place, 1));
        } else {
            self.others += 1;
        }
    }

    fn clear(&mut self) {
        self.known.clear();
        self.others = 0;
    }

    /// The places in words, in their order, by the names that they are given.
    pub fn to_text(&self, name: &dyn Fn(Place) -> String) -> String {
        let mut known = self.known.clone();
        known.sort_unstable();
        let mut parts: Vec<String> = known
            .into_iter()
            .map(|(place, rows)| match rows {
                1 => name(place),
                rows => format!("{} ({rows} rows)", name(place)),
            })
            .collect();
        if self.others > 0 {
            parts.push(format!("elsewhere ({} rows)", self.others));
        }
        parts.join(", ")
    }
}

/// An id, and the rows that have it. None before the first.
#[derive(Clone, Debug, Default)]
pub struct Group {
    id: Option<i64>,
    rows: u64,
    places: Places,
}

impl Group {
    /// Whether these rows have this id.
    pub fn is_of(&self, id: i64) -> bool {
        self.id == Some(id)
    }

    /// Begins with the first row of an id.
    pub fn begin(&mut self, id: i64, place: Place) {
        self.places.clear();
        (self.id, self.rows) = (Some(id), 0);
        self.add(place);
    }

    /// Adds a row of the same id.
    pub fn add(&mut self, place: Place) {
        self.rows += 1;
        self.places.add(place);
    }

    /// The id; None before the first.
    pub fn id(&self) -> Option<i64> {
        self.id
    }

    /// How many rows have it.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Where they are.
    pub fn places(&self) -> &Places {
        &self.places
    }
}
