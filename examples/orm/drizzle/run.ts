import { readFileSync } from "node:fs";
import { asc, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { bigint, bigserial, pgTable, text } from "drizzle-orm/pg-core";
import { pushSchema } from "drizzle-kit/api";
import * as schema from "./schema";

const big = 2n ** 53n; // snowflake ids are above this, numbers of a sequence are not

function check(holds: boolean, claim: string, kind = "ok") {
  console.log(`${holds ? kind : "FAILED"}: ${claim}`);
  if (!holds) process.exit(1);
}

const version = (name: string) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;
console.log(`== Drizzle ${version("drizzle-orm")} with drizzle-kit ${version("drizzle-kit")}`);

const inserts: string[] = [];
const logger = { logQuery: (query: string) => void (query.startsWith("insert") && inserts.push(query)) };
const db = drizzle(process.env.DATABASE_URL!, { schema, logger });
const { customer, invoice, order } = schema;

await migrate(db, { migrationsFolder: "migrations" }); // all in one transaction
const first = await db.execute(sql`SELECT c.id > ${big} AND c.xmin = e.xmin AND old.xmin = e.xmin AS holds
  FROM customer AS c, customer AS old, pg_extension AS e WHERE c.name = 'migrated' AND old.id = 3 AND extname = 'snowflake_ids'`);
check(first.rows[0].holds === true, "all migrations in one transaction of a new server, from CREATE EXTENSION and attach to the first id");

const [ada] = await db.insert(customer).values({ name: "Ada" }).returning();
const old = await db.query.customer.findFirst({ where: eq(customer.id, 3n) });
check(ada.id > big && old?.name === "old 2", "attach in a migration: insert() gives snowflake ids; old rows keep theirs");
const [bill] = await db.insert(invoice).values({ customerId: ada.id }).returning();
check(bill.id === 2n, "attach with a tag: insert() continues above the rows");

inserts.length = 0;
const made = await db.insert(order).values(Array.from({ length: 1000 }, (_, n) => ({ note: `order ${n}`, customerId: ada.id }))).returning();
check(inserts.length === 1 && new Set(made.map(({ id }) => id)).size === 1000,
  "insert() of 1,000 is one statement and returns the ids");
const read = await db.query.order.findMany({ orderBy: asc(order.id), with: { customer: true } });
check(read.every((row, n) => row.note === `order ${n}` && row.customer.id === ada.id), "ids are in the order of the objects, and each object is read with its relation");

await db.insert(order).values({ id: 77n, customerId: 1n, note: "fixture" });
const [next] = await db.insert(order).values({ customerId: 1n, note: "x" }).returning();
check(next.id > big, "a fixture with an id of its own; new ids stay snowflakes");
const differences = async (changed = {}) => (await pushSchema({ ...schema, ...changed }, db as any, ["public"])).statementsToExecute;
check((await differences()).length === 0, "drizzle-kit's push finds nothing to change");

const numbers = await db.select().from(pgTable("order", { id: bigint({ mode: "number" }) }));
check(new Set(numbers.map(({ id }) => id)).size < numbers.length, 'with mode "number", several ids become the same', "trap");
try {
  JSON.stringify(made);
} catch (error) {
  check(error instanceof TypeError, "JSON.stringify refuses a bigint: give ids out as strings", "trap");
}
const stays = pgTable("customer", { id: bigserial({ mode: "bigint" }).primaryKey(), name: text().notNull() });
check((await differences({ customer: stays })).some((query) => query.includes("DROP DEFAULT")),
  "push drops the default of a key that stays bigserial in the schema", "trap");
const bare = pgTable("invoice", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`segment_nextval('invoices')`),
  customerId: schema.customerId(),
});
check((await differences({ invoice: bare })).some((query) => query.includes("SET DEFAULT segment_nextval('invoices')")),
  "a default spelt 'invoices' differs each time, because drizzle-kit reads 'invoices'::text", "trap");

// The other way: the default stays, and the sequence that it calls is bound.
const ticket = pgTable("ticket", { id: bigserial({ mode: "bigint" }).primaryKey() });
await db.execute(sql`CREATE TABLE ticket (id bigserial PRIMARY KEY)`);
await db.execute(sql`SELECT snowflake_ids.bind_sequence('ticket_id_seq')`);
check((await db.insert(ticket).values({}).returning())[0].id > big && (await differences({ ticket })).length === 0,
  "bind_sequence instead of attach: bigserial gives snowflake ids, and push finds nothing to change");
await db.$client.end();
