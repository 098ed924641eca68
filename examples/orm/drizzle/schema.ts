import { relations, sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";

// mode "bigint", because JavaScript's numbers would round ids. A tag is written with ::text, as drizzle-kit reads it back.
const id = () => bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_nextval()`);
export const customerId = () => bigint("customer_id", { mode: "bigint" }).notNull().references(() => customer.id);

export const customer = pgTable("customer", { id: id(), name: text().notNull() });
export const invoice = pgTable("invoice", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`segment_nextval('invoices'::text)`),
  customerId: customerId(),
});
export const order = pgTable("order", { id: id(), customerId: customerId(), note: text().notNull() });

export const customerRelations = relations(customer, ({ many }) => ({ orders: many(order) }));
export const orderRelations = relations(order, ({ one }) => ({
  customer: one(customer, { fields: [order.customerId], references: [customer.id] }),
}));
