// Tables that TypeORM makes from entities, in a database with new_columns = bound.
import "reflect-metadata";
import { writeFileSync } from "node:fs";
import { Column, DataSource, Entity, PrimaryGeneratedColumn } from "typeorm";

@Entity()
class Customer {
  @PrimaryGeneratedColumn({ type: "bigint" }) id: string;
  @Column({ type: "text" }) name: string;
}
const url = process.env.DATABASE_URL;
const source = await new DataSource({ type: "postgres", url, entities: [Customer], synchronize: true }).initialize();
const made = await source.getRepository(Customer).save(Array.from({ length: 1000 }, (_, n) => ({ name: `customer ${n}` })));
const differences = (await source.driver.createSchemaBuilder().log()).upQueries;
if (differences.length > 0) throw new Error(`schema:log finds ${differences[0].query}`);
console.log("ok: new_columns = 'bound': tables as synchronize makes them give ids, and schema:log finds nothing to change");
await source.destroy();
writeFileSync(process.argv[2], made.map(({ id }) => `${id}\n`).join(""));
