//! Ids of tags inside a server.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::backend_tests::one;
    use crate::shared::segments::SEGMENTS;
    use crate::tag;
    use pgrx::prelude::*;

    fn run(sql: &str) {
        Spi::run(sql).unwrap();
    }

    fn next(tag: &str) -> i64 {
        tag::next("test", tag.as_bytes()).unwrap()
    }

    /// Returns the number of slots in shared memory that a tag has.
    fn slots(tag: &str) -> usize {
        let directory = SEGMENTS.get().unwrap().directory.read();
        directory.iter().filter(|(_, key)| key.tag.as_bytes() == tag.as_bytes()).count()
    }

    #[pg_test]
    fn a_tag_made_here_is_served_from_this_transaction() {
        run("SELECT snowflake_ids.segment_create('here', start => 5, increment => 2, remainder => 0)");
        assert_eq!([next("here"), next("here"), next("here")], [6, 8, 10]);
        assert_eq!(slots("here"), 0, "no other session gets to know it");
        let max_id: i64 = one("SELECT max_id FROM snowflake_ids.segment WHERE tag = 'here'");
        assert_eq!(max_id, 4, "written when it commits");
    }

    #[pg_test]
    fn the_worker_makes_tags_that_outlive_the_transaction() {
        run("SET snowflake_ids.segment_auto_create = on");
        let id = next("made by the worker");
        assert_eq!(next("made by the worker"), id + 1);
        assert_eq!(slots("made by the worker"), 1);
    }
}
