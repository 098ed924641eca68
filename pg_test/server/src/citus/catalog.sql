/* A stand-in for Citus in one database of a throwaway server: the tables of Citus in pg_catalog, as far as this project and its
   tests read them. The stand-in's behaviour was compared with Citus 13.2. It is no extension, and distributes no rows. */
SET allow_system_table_mods = on;
SET citus.enable_ddl_propagation = off;
-- Some functions call functions that are created later.
SET check_function_bodies = off;

CREATE SCHEMA citus_stand_in;
GRANT USAGE ON SCHEMA citus_stand_in TO PUBLIC;
CREATE EXTENSION dblink SCHEMA citus_stand_in;
GRANT EXECUTE ON FUNCTION citus_stand_in.dblink_connect_u(text, text) TO PUBLIC;

CREATE TYPE pg_catalog.noderole AS ENUM ('primary', 'secondary', 'unavailable');

-- 0 is the coordinator's group, and the group of a server that belongs to no cluster yet.
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer NOT NULL PRIMARY KEY);
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);

CREATE SEQUENCE pg_catalog.pg_dist_node_nodeid_seq;
CREATE SEQUENCE pg_catalog.pg_dist_groupid_seq;
CREATE TABLE pg_catalog.pg_dist_node (
    nodeid            integer NOT NULL DEFAULT nextval('pg_catalog.pg_dist_node_nodeid_seq') PRIMARY KEY,
    groupid           integer NOT NULL DEFAULT nextval('pg_catalog.pg_dist_groupid_seq'),
    nodename          text NOT NULL,
    nodeport          integer NOT NULL DEFAULT 5432,
    noderack          text NOT NULL DEFAULT 'default',
    hasmetadata       boolean NOT NULL DEFAULT false,
    isactive          boolean NOT NULL DEFAULT true,
    noderole          pg_catalog.noderole NOT NULL DEFAULT 'primary',
    nodecluster       name NOT NULL DEFAULT 'default',
    metadatasynced    boolean DEFAULT false,
    shouldhaveshards  boolean NOT NULL DEFAULT true,
    nodeisclone       boolean NOT NULL DEFAULT false,
    nodeprimarynodeid integer NOT NULL DEFAULT 0,
    UNIQUE (nodename, nodeport)
);

CREATE TABLE pg_catalog.pg_dist_authinfo (
    nodeid   integer NOT NULL,
    rolename name NOT NULL,
    authinfo text NOT NULL,
    UNIQUE (rolename, nodeid)
);

CREATE TABLE pg_catalog.pg_dist_partition (
    logicalrelid  regclass NOT NULL UNIQUE,
    partmethod    "char" NOT NULL,
    partkey       text,
    colocationid  integer NOT NULL DEFAULT 0,
    repmodel      "char" NOT NULL DEFAULT 's',
    autoconverted boolean DEFAULT false
);
GRANT SELECT ON pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node, pg_catalog.pg_dist_partition TO PUBLIC;

-- The columns of a distributed table before a change: an event trigger does not learn what ALTER TABLE changes.
CREATE TABLE citus_stand_in.columns (
    of_table  regclass NOT NULL,
    name      name NOT NULL,
    value     text,
    identity  "char" NOT NULL,
    PRIMARY KEY (of_table, name)
);
