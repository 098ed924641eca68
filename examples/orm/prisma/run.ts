import { readdirSync, readFileSync } from "node:fs";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { PrismaClient } from "./client/client";

const big = 2n ** 53n; // snowflake ids are above this, numbers of a sequence are not

function check(holds: boolean, claim: string, kind = "ok") {
  console.log(`${holds ? kind : "FAILED"}: ${claim}`);
  if (!holds) process.exit(1);
}

console.log(`== Prisma ${JSON.parse(readFileSync("node_modules/@prisma/client/package.json", "utf8")).version}, the client`);
const connectionString = process.env.DATABASE_URL;

// `prisma migrate deploy` would do this, but it downloads a program of its own. A file is one query of several statements, which
// Postgres runs as one transaction.
const plain = new pg.Client({ connectionString });
await plain.connect();
for (const name of readdirSync("migrations").sort()) await plain.query(readFileSync(`migrations/${name}/migration.sql`, "utf8"));
const first = await plain.query(`SELECT c.id > ${big} AND c.xmin = e.xmin AS holds FROM customer AS c, pg_extension AS e
  WHERE name = 'migrated' AND extname = 'snowflake_ids'`);
check(first.rows[0].holds, "CREATE EXTENSION, attach and the first id in one migration of a new server");
await plain.end();

const inserts: string[] = [];
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }), log: [{ emit: "event", level: "query" }] });
prisma.$on("query", ({ query }) => void (query.startsWith("INSERT") && inserts.push(query)));

const ada = await prisma.customer.create({ data: { name: "Ada" } });
const old = await prisma.customer.findUnique({ where: { id: 3n } });
check(ada.id > big && old?.name === "old 2", "attach in a migration: create() gives snowflake ids; old rows keep theirs");
const invoice = await prisma.invoice.create({ data: { customerId: ada.id } });
check(invoice.id === 2n, "attach with a tag: create() continues above the rows");

inserts.length = 0;
const made = await prisma.order.createManyAndReturn({
  data: Array.from({ length: 1000 }, (_, n) => ({ note: `order ${n}`, customerId: ada.id })),
});
check(inserts.length === 1 && new Set(made.map(({ id }) => id)).size === 1000,
  "createManyAndReturn() of 1,000 is one statement and returns the ids");
const read = await prisma.order.findMany({ orderBy: { id: "asc" }, include: { customer: true } });
check(read.every((order, n) => order.note === `order ${n}` && order.customer.id === ada.id),
  "ids are in the order of the objects, and each object is read with its relation");
const nested = await prisma.customer.create({
  data: { name: "Grace", orders: { create: [{ note: "one" }, { note: "two" }] } },
  include: { orders: true },
});
check(nested.orders.every((order) => order.customerId === nested.id && order.id > big), "create() with nested rows");

await prisma.order.create({ data: { id: 77n, customerId: 1n, note: "fixture" } });
check((await prisma.order.create({ data: { customerId: 1n, note: "x" } })).id > big,
  "a fixture with an id of its own; new ids stay snowflakes");

check(new Set(made.map(({ id }) => Number(id))).size < 1000, "Number(id) rounds: several ids become the same", "trap");
try {
  JSON.stringify(made);
} catch (error) {
  check(error instanceof TypeError, "JSON.stringify refuses a BigInt: give ids out as strings", "trap");
}
await prisma.$disconnect();
