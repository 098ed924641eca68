-- The demo's record of what happened and what held.

CREATE TABLE report (
    n       int GENERATED ALWAYS AS IDENTITY,
    at      text NOT NULL DEFAULT '',
    what    text NOT NULL,
    figures text NOT NULL,
    ok      bool NOT NULL
);

-- The ids that sessions were told when their rows were committed.
CREATE TABLE acknowledged (
    table_name text     NOT NULL,
    ids        bigint[] NOT NULL
);
