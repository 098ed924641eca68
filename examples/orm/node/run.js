// Drivers and ORMs of Node.js that need no set-up, each with its own inserts into the tables of shop.sql. Then three tools
// that read a schema.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const url = process.env.DATABASE_URL;
const big = 2n ** 53n; // snowflake ids are above this, numbers of a tag are not
const rows = Array.from({ length: 1000 }, (_, n) => ({ name: `row ${n}` }));

function check(holds, claim, kind = "ok") {
  console.log(`${holds ? kind : "FAILED"}: ${claim}`);
  if (!holds) process.exit(1);
}

function begin(name, pack) {
  console.log(`== ${name} ${JSON.parse(readFileSync(`node_modules/${pack}/package.json`, "utf8")).version}`);
}

// Whether `ids` are `count` snowflake ids, in the order of their rows.
function areNew(ids, count = 1000) {
  const all = ids.map(BigInt);
  return all.length === count && all.every((id, n) => id > big && (n === 0 || id > all[n - 1]));
}

const values = rows.map((_, n) => `($${n + 1})`).join();
const names = rows.map(({ name }) => name);
const insert = `INSERT INTO customer (name) VALUES ${values} RETURNING id`;

begin("node-postgres", "pg");
const { default: pg } = await import("pg");
const pool = new pg.Pool({ connectionString: url });
const said = (await pool.query(insert, names)).rows;
check(said.every(({ id }) => typeof id === "string") && areNew(said.map(({ id }) => id)), "query() of 1,000 with RETURNING gives strings");
const { rows: [invoice] } = await pool.query("INSERT INTO invoice (customer_id) VALUES ($1) RETURNING id, lastval()", [said[0].id]);
check(invoice.id === invoice.lastval && BigInt(invoice.id) < big, "a number of a tag, which lastval() returns, too");
check(new Set(said.map(({ id }) => Number(id))).size < 1000, "Number(id) rounds: several ids become the same", "trap");

begin("Postgres.js", "postgres");
const { default: postgres } = await import("postgres");
const sql = postgres(url);
check(areNew((await sql`INSERT INTO customer ${sql(rows, "name")} RETURNING id`).map(({ id }) => id)), "an INSERT of 1,000 with RETURNING");
await sql.end();

begin("pg-promise", "pg-promise");
const { default: promised } = await import("pg-promise");
const pgp = promised();
const db = pgp(url);
check(areNew((await db.many(`${pgp.helpers.insert(rows, ["name"], "customer")} RETURNING id`)).map(({ id }) => id)), "helpers.insert() of 1,000");
pgp.end();

begin("Slonik", "slonik");
const slonik = await import("slonik");
const { z } = await import("zod");
const slow = await slonik.createPool(url);
const customer = z.object({ id: z.bigint() });
const one = await slow.one(slonik.sql.type(customer)`INSERT INTO customer (name) VALUES ('Ada') RETURNING id`);
check(areNew([one.id], 1), "one() with RETURNING gives a BigInt");
await slow.end();

begin("Knex", "knex");
const { default: knexes } = await import("knex");
const knex = knexes({ client: "pg", connection: url });
check(areNew((await knex("customer").insert(rows, ["id"])).map(({ id }) => id)), "insert() of 1,000 with returning");
check(areNew((await knex.batchInsert("customer", rows, 100).returning("id")).map(({ id }) => id)), "batchInsert() of 1,000");

begin("Objection", "objection");
const { Model } = await import("objection");
class Customer extends Model {
  static tableName = "customer";
}
Customer.knex(knex);
check(areNew((await Customer.query().insert(rows)).map(({ id }) => id)), "insert() of 1,000 sets the ids");
await knex.destroy();

begin("Kysely", "kysely");
const { Kysely, PostgresDialect } = await import("kysely");
const kysely = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }) });
check(areNew((await kysely.insertInto("customer").values(rows).returning("id").execute()).map(({ id }) => id)), "insertInto() of 1,000 with returning()");
await kysely.destroy();

begin("Sequelize", "sequelize");
const { Sequelize, DataTypes } = await import("sequelize");
const sequelize = new Sequelize(url, { logging: false });
const own = { timestamps: false, freezeTableName: true };
const key = { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true };
const Sequelized = sequelize.define("customer", { id: key, name: DataTypes.TEXT }, own);
const Invoice = sequelize.define("invoice", { id: key, customerId: { type: DataTypes.BIGINT, field: "customer_id" } }, own);
const ada = await Sequelized.create({ name: "Ada" });
check(areNew([ada.id], 1), "create() sets the id, a string");
check(areNew((await Sequelized.bulkCreate(rows, { returning: true })).map(({ id }) => id)), "bulkCreate() of 1,000 sets the ids");
check(BigInt((await Invoice.create({ customerId: ada.id })).id) < big, "a number of a tag, and a relation");
await sequelize.sync();
check(areNew([(await Sequelized.create({ name: "Ada" })).id], 1), "sync() leaves the tables as they are");
await sequelize.sync({ alter: true });
check(areNew([(await Sequelized.create({ name: "Ada" })).id], 1), "sync({ alter: true }) does not remove the default");
await sequelize.close();

begin("MikroORM", "@mikro-orm/core");
await pool.query("CREATE TABLE ticket (id bigserial PRIMARY KEY, name text NOT NULL); SELECT snowflake_ids.bind_sequence('ticket_id_seq')");
const { EntitySchema, MikroORM } = await import("@mikro-orm/postgresql");
const properties = { id: { type: "bigint", primary: true }, name: { type: "text" } };
const entities = ["customer", "ticket"].map((name) => new EntitySchema({ name, properties }));
const orm = await MikroORM.init({ clientUrl: url, entities });
const manager = orm.em.fork();
const made = rows.map((row) => manager.create("customer", row));
await manager.persistAndFlush(made);
check(areNew(made.map(({ id }) => id)), "persistAndFlush() of 1,000 sets the ids");
const changes = await orm.schema.getUpdateSchemaSQL();
check(changes.includes('alter table "customer" alter column "id" drop default'), "the schema's diff drops the default of an attached column", "trap");
check(!changes.includes('"ticket"'), "bind_sequence instead of attach: the schema's diff has nothing to change");
await orm.close();

await pool.end();

begin("Directus's schema", "@directus/schema");
const { createInspector } = await import("@directus/schema");
const inspected = knexes({ client: "pg", connection: url });
const keys = await createInspector(inspected).overview();
const isGenerated = (table) => keys[table].columns.id.default_value === "AUTO_INCREMENT";
check(isGenerated("ticket"), "the key of a bound sequence counts as generated");
check(!isGenerated("customer"), "the key of an attached column does not count as generated", "trap");
await inspected.destroy();

begin("sequelize-auto", "sequelize-auto");
const { PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD } = process.env;
const login = ["-e", "postgres", "-h", PGHOST, "-p", PGPORT, "-d", PGDATABASE, "-u", PGUSER, "-x", PGPASSWORD];
execFileSync("npx", ["sequelize-auto", ...login, "--schema", "public", "-o", "models"], { stdio: "pipe" });
const model = (name) => readFileSync(`models/${name}.js`, "utf8");
check(model("customer").includes("defaultValue: Sequelize.Sequelize.fn('snowflake_nextval')"), "the default of a snowflake id becomes a call");
check(model("invoice").includes("defaultValue: segment_nextval(invoices,"), "the default of a tag is no valid JavaScript: write autoIncrement: true in its place", "trap");

begin("drizzle-kit pull", "drizzle-kit");
writeFileSync("drizzle.config.js", 'export default { dialect: "postgresql", out: "pulled", dbCredentials: { url: process.env.DATABASE_URL } };\n');
execFileSync("npx", ["drizzle-kit", "pull"], { stdio: "pipe" });
const pulled = readFileSync("pulled/schema.ts", "utf8");
check(pulled.includes('.default(sql`snowflake_nextval()`)') && pulled.includes(".default(sql`segment_nextval('invoices'::text)`)"), "the defaults are those of the tables");
check(pulled.includes('bigint({ mode: "number" })'), "each key gets mode number, which rounds ids: write mode bigint", "trap");
