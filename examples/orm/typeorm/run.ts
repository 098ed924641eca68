import { readFileSync } from "node:fs";
import { Column, DataSource, Entity, PrimaryColumn, PrimaryGeneratedColumn } from "typeorm";
import { Customer, Invoice, Order } from "./entities";
import * as migrations from "./migrations";

const big = 2n ** 53n; // snowflake ids are above this, numbers of a sequence are not

function check(holds: boolean, claim: string, kind = "ok") {
  console.log(`${holds ? kind : "FAILED"}: ${claim}`);
  if (!holds) process.exit(1);
}

const version = JSON.parse(readFileSync("node_modules/typeorm/package.json", "utf8")).version;
console.log(`== TypeORM ${version}`);

const inserts: string[] = [];
const url = process.env.DATABASE_URL;
const source = await new DataSource({
  type: "postgres", url, entities: [Customer, Invoice, Order], migrations: Object.values(migrations),
  logger: { logQuery: (query: string) => void (query.startsWith("INSERT") && inserts.push(query)),
    logQueryError: () => {}, logQuerySlow: () => {}, logSchemaBuild: () => {}, logMigration: () => {}, log: () => {} }, logging: true,
}).initialize();
await source.runMigrations(); // all in one transaction
const [{ holds }] = await source.query(`SELECT c.id > ${big} AND c.xmin = e.xmin AND old.xmin = e.xmin AS holds
  FROM customer AS c, customer AS old, pg_extension AS e WHERE c.name = 'migrated' AND old.id = 3 AND extname = 'snowflake_ids'`);
check(holds, "all migrations in one transaction of a new server, from CREATE EXTENSION and attach to the first id");
const differences = async (of: DataSource) => (await of.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query);

const customers = source.getRepository(Customer), orders = source.getRepository(Order);
const ada = await customers.save({ name: "Ada" });
check(BigInt(ada.id) > big && (await customers.findOneBy({ id: "3" }))?.name === "old 2",
  "attach in a migration: save() gives snowflake ids; old rows keep theirs");
check((await source.getRepository(Invoice).save({ customer: ada })).id === "2", "attach with a tag: save() continues above the rows");

inserts.length = 0;
const made = await orders.save(Array.from({ length: 1000 }, (_, n) => ({ note: `order ${n}`, customer: ada })));
check(inserts.length === 1 && new Set(made.map((order) => order.id)).size === 1000, "save() of 1,000 is one statement and returns the ids");
const read = await orders.find({ order: { id: "ASC" }, relations: { customer: true } });
check(read.every((order, n) => order.note === `order ${n}` && order.customer.id === ada.id),
  "ids are in the order of the objects, and each object is read with its relation");

await orders.insert({ id: "77", note: "fixture", customer: { id: "1" } as Customer });
check(BigInt((await orders.save({ note: "x", customer: ada })).id) > big, "a fixture with an id of its own; new ids stay snowflakes");
check((await differences(source)).length === 0, "schema:log finds nothing to change");
await source.destroy();

// Other models of the same tables.
@Entity({ name: "customer" })
class Generated {
  @PrimaryGeneratedColumn({ type: "bigint" }) id: string;
  @Column({ type: "text" }) name: string;
}
@Entity({ name: "invoice" })
class Spelt {
  @PrimaryColumn({ type: "bigint", default: () => "segment_nextval('invoices'::text)" }) id: string;
  @Column({ type: "bigint", nullable: true }) customerId: string;
}
const other = await new DataSource({ type: "postgres", url, entities: [Generated, Spelt] }).initialize();
check(BigInt((await other.getRepository(Generated).save({ name: "x" })).id) > big,
  "an entity with @PrimaryGeneratedColumn gets snowflake ids, too");
const wanted = await differences(other);
check(wanted.some((query) => query.includes(`SET DEFAULT nextval('"customer_id_seq"')`)),
  "schema:log, migration:generate and synchronize want the sequence of @PrimaryGeneratedColumn back", "trap");
check(wanted.some((query) => query.includes("SET DEFAULT segment_nextval('invoices'::text)")),
  "a default spelt 'invoices'::text differs each time, because TypeORM removes ::text from what it reads", "trap");
await other.destroy();

// The other way: the default stays, and the sequence that it calls is bound.
@Entity()
class Ticket {
  @PrimaryGeneratedColumn({ type: "bigint" }) id: string;
}
const bound = await new DataSource({ type: "postgres", url, entities: [Ticket], synchronize: true }).initialize();
await bound.query("SELECT snowflake_ids.bind_sequence('ticket_id_seq')");
check(BigInt((await bound.getRepository(Ticket).save({})).id) > big && (await differences(bound)).length === 0,
  "bind_sequence instead of attach: @PrimaryGeneratedColumn gives snowflake ids, and schema:log finds nothing to change");
await bound.destroy();

const numbers = await new DataSource({ type: "postgres", url, parseInt8: true }).initialize();
const rounded: { id: number }[] = await numbers.query(`SELECT id FROM "order"`);
check(new Set(rounded.map(({ id }) => id)).size < rounded.length, "with parseInt8, several ids become the same number", "trap");
await numbers.destroy();
