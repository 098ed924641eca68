//! Ids of tags inside a server.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::backend_tests::{one, sqlstate};
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
    fn a_change_that_is_rolled_back_gives_no_ids_back() {
        run("SELECT snowflake_ids.segment_create('back')");
        assert_eq!(next("back"), 1);
        run("DO $$ BEGIN
                 PERFORM snowflake_ids.segment_set('back', 10);
                 ASSERT segment_nextval('back') = 11;
                 RAISE division_by_zero;
             EXCEPTION WHEN division_by_zero THEN NULL; END $$");
        assert_eq!(next("back"), 12);
    }

    #[pg_test]
    fn a_tag_that_is_rolled_back_is_gone() {
        run("DO $$ BEGIN
                 PERFORM snowflake_ids.segment_create('gone');
                 ASSERT segment_nextval('gone') = 1;
                 RAISE division_by_zero;
             EXCEPTION WHEN division_by_zero THEN NULL; END $$");
        assert_eq!(sqlstate("SELECT segment_nextval('gone')"), "42704");
    }

    #[pg_test]
    fn a_tag_that_is_dropped_here_is_gone_here() {
        run("SELECT snowflake_ids.segment_create('short lived')");
        assert_eq!(next("short lived"), 1);
        run("SELECT snowflake_ids.segment_drop('short lived')");
        assert_eq!(sqlstate("SELECT segment_nextval('short lived')"), "42704");
        run("SELECT snowflake_ids.segment_create('short lived', start => 7)");
        assert_eq!(next("short lived"), 7);
    }

    #[pg_test]
    fn the_worker_makes_tags_that_outlive_the_transaction() {
        run("SET snowflake_ids.segment_auto_create = on");
        let id = next("made by the worker");
        assert_eq!(next("made by the worker"), id + 1);
        assert_eq!(slots("made by the worker"), 1);
    }

    #[pg_test]
    fn refusals_have_their_sqlstates() {
        run("SELECT snowflake_ids.segment_create('full', max_value => 1)");
        next("full");
        for (sql, state) in [
            ("SELECT segment_nextval('')", "22023"),
            ("SELECT segment_nextval(NULL)", "22023"),
            ("SELECT segment_nextval(repeat('x', 129))", "22023"),
            ("SELECT segment_nextval('unknown')", "42704"),
            ("SELECT segment_nextval_text('unknown')", "42704"),
            ("SELECT segment_nextval('full')", "2200H"),
            ("SELECT segment_currval('unknown')", "55000"),
            ("SELECT segment_nextvals('full', 0)", "22023"),
            ("SELECT snowflake_ids.segment_create('full')", "42710"),
            ("SELECT snowflake_ids.segment_create('x', step => 0)", "22023"),
            ("SELECT snowflake_ids.segment_create('x', step => 11, max_step => 10)", "22023"),
            ("SELECT snowflake_ids.segment_create('x', start => 9223372036854775808)", "22023"),
            ("SELECT snowflake_ids.segment_create('x', increment => 0)", "22023"),
            ("SELECT snowflake_ids.segment_create('x', increment => 2, remainder => 2)", "22023"),
            ("SELECT snowflake_ids.segment_create('x', reset => 'week')", "22023"),
            ("SELECT snowflake_ids.segment_create('x', time_zone => 'Moon')", "22023"),
            ("SELECT snowflake_ids.segment_create('x', format => '{')", "22023"),
            ("SELECT snowflake_ids.segment_alter('unknown')", "42704"),
            ("SELECT snowflake_ids.segment_drop('unknown')", "42704"),
            ("SELECT snowflake_ids.segment_set('unknown', 1)", "42704"),
            ("SELECT snowflake_ids.segment_set('full', 0)", "22023"),
            ("TRUNCATE snowflake_ids.segment", "0A000"),
        ] {
            assert_eq!(sqlstate(sql), state, "{sql}");
        }
    }

    #[pg_test]
    fn text_keys_have_the_formats_of_their_rows() {
        run("SELECT snowflake_ids.segment_create('text', format => 'no. {n:3}')");
        let text = || tag::next_text("test", b"text").unwrap();
        assert_eq!([text(), text()], ["no. 001", "no. 002"]);
        run("SELECT snowflake_ids.segment_alter('text', format => '#{n}')");
        assert_eq!(text(), "#3");
    }
}
