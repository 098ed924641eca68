import type { MigrationInterface, QueryRunner } from "typeorm";

export class Initial1000000000001 implements MigrationInterface { // the tables before the extension, by @PrimaryGeneratedColumn
  async up(runner: QueryRunner) {
    await runner.query(`CREATE TABLE customer (id BIGSERIAL PRIMARY KEY, name text NOT NULL)`);
    await runner.query(`CREATE TABLE invoice (id BIGSERIAL PRIMARY KEY, "customerId" bigint)`);
    await runner.query(`ALTER TABLE invoice ADD CONSTRAINT "FK_925aa26ea12c28a6adb614445ee"
        FOREIGN KEY ("customerId") REFERENCES customer (id)`);
    await runner.query(`INSERT INTO customer (name) VALUES ('old 0'), ('old 1'), ('old 2')`);
    await runner.query(`INSERT INTO invoice ("customerId") VALUES (1)`);
  }
  async down() {}
}

export class Ids1000000000002 implements MigrationInterface {
  async up(runner: QueryRunner) {
    await runner.query(`CREATE EXTENSION snowflake_ids`);
    await runner.query(`SELECT snowflake_ids.attach('customer', 'id')`);
    await runner.query(`SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices')`);
    // The extension gives ids from here on, in this transaction.
    await runner.query(`INSERT INTO customer (name) VALUES ('migrated')`);
    // This is what migration:generate writes for the entity.
    await runner.query(`CREATE TABLE "order" (id bigint NOT NULL DEFAULT snowflake_nextval(), note text NOT NULL, "customerId" bigint,
        CONSTRAINT "PK_1031171c13130102495201e3e20" PRIMARY KEY (id))`);
    await runner.query(`ALTER TABLE "order" ADD CONSTRAINT "FK_124456e637cca7a415897dce659"
        FOREIGN KEY ("customerId") REFERENCES customer (id)`);
  }
  async down() {}
}
