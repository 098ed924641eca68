-- The demo's record of the events, and of the checks with their results.

CREATE TABLE report (
    n       int GENERATED ALWAYS AS IDENTITY,
    at      text NOT NULL DEFAULT '',
    what    text NOT NULL,
    figures text NOT NULL,
    ok      bool NOT NULL
);

-- The ids that the nodes returned to sessions for committed rows.
CREATE TABLE acknowledged (
    table_name text     NOT NULL,
    ids        bigint[] NOT NULL
);
