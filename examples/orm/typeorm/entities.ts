import "reflect-metadata";
import { Column, Entity, ManyToOne, OneToMany, PrimaryColumn, type Relation } from "typeorm";

// bigint is a string here, because JavaScript's numbers would round it. The defaults are written as TypeORM reads them back:
// without ::text.
@Entity()
export class Customer {
  @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" }) id: string;
  @Column({ type: "text" }) name: string;
  @OneToMany(() => Order, (order) => order.customer) orders: Relation<Order[]>;
}

@Entity()
export class Invoice {
  @PrimaryColumn({ type: "bigint", default: () => "segment_nextval('invoices')" }) id: string;
  @ManyToOne(() => Customer) customer: Relation<Customer>;
}

@Entity()
export class Order {
  @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" }) id: string;
  @ManyToOne(() => Customer, (customer) => customer.orders, { cascade: true }) customer: Relation<Customer>;
  @Column({ type: "text" }) note: string;
}
