// Tables that drizzle-kit makes from a schema, in a database with new_columns = bound.
import { writeFileSync } from "node:fs";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigserial, pgTable, text } from "drizzle-orm/pg-core";
import { pushSchema } from "drizzle-kit/api";

const customer = pgTable("customer", { id: bigserial({ mode: "bigint" }).primaryKey(), name: text().notNull() });
const db = drizzle(process.env.DATABASE_URL!);
const push = () => pushSchema({ customer }, db as any, ["public"]);
await (await push()).apply();
const made = await db.insert(customer).values(Array.from({ length: 1000 }, (_, n) => ({ name: `customer ${n}` }))).returning();
const { statementsToExecute } = await push();
if (statementsToExecute.length > 0) throw new Error(`push finds ${statementsToExecute[0]}`);
console.log("ok: new_columns = 'bound': tables as push makes them give ids, and it then finds nothing to change");
await db.$client.end();
writeFileSync(process.argv[2], made.map(({ id }) => `${id}\n`).join(""));
