use sqlx::postgres::{PgPoolCopyExt, PgPoolOptions};
use sqlx::{FromRow, query, query_as, query_scalar};
use std::collections::HashSet;

/// Snowflake ids are above this value, numbers of a sequence are not.
const BIG: i64 = 1 << 53;

#[derive(FromRow)]
struct Order {
    id: i64,
    note: String,
    customer: String,
}

fn check(holds: bool, claim: &str) {
    println!("{}: {claim}", if holds { "ok" } else { "FAILED" });
    if !holds {
        std::process::exit(1);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), sqlx::Error> {
    println!("== sqlx 0.9.0");
    let pool = PgPoolOptions::new().connect(&std::env::var("DATABASE_URL").expect("DATABASE_URL")).await?;
    sqlx::migrate!().run(&pool).await?;
    let first: bool = query_scalar(
        "SELECT c.id > $1 AND c.xmin = e.xmin FROM customer AS c, pg_extension AS e
         WHERE name = 'migrated' AND extname = 'snowflake_ids'",
    )
    .bind(BIG)
    .fetch_one(&pool)
    .await?;
    check(first, "CREATE EXTENSION, attach and the first id in one migration of a new server");

    let ada: i64 =
        query_scalar("INSERT INTO customer (name) VALUES ('Ada') RETURNING id").fetch_one(&pool).await?;
    let old: i64 = query_scalar("SELECT count(*) FROM customer WHERE id <= 3").fetch_one(&pool).await?;
    check(
        ada > BIG && old == 3,
        "attach in a migration: INSERT ... RETURNING gives snowflake ids; old rows keep theirs",
    );
    let invoice: i64 = query_scalar("INSERT INTO invoice (customer_id) VALUES ($1) RETURNING id")
        .bind(ada)
        .fetch_one(&pool)
        .await?;
    check(invoice == 2, "attach with a tag: INSERT continues above the rows");

    let notes: Vec<String> = (0..1000).map(|n| format!("order {n}")).collect();
    let ids: Vec<i64> =
        query_scalar("INSERT INTO orders (customer_id, note) SELECT $1, unnest($2::text[]) RETURNING id")
            .bind(ada)
            .bind(&notes)
            .fetch_all(&pool)
            .await?;
    check(
        ids.iter().collect::<HashSet<_>>().len() == 1000,
        "1,000 rows by unnest() are one statement and return their ids",
    );
    check(ids.is_sorted(), "ids are in the order of the rows");

    let mut copy = pool.copy_in_raw("COPY orders (customer_id, note) FROM STDIN").await?;
    copy.send(format!("{ada}\tcopied\n").repeat(1000).as_bytes()).await?;
    check(copy.finish().await? == 1000, "COPY of 1,000 rows");
    let orders: Vec<Order> = query_as(
        "SELECT o.id, o.note, c.name AS customer FROM orders AS o JOIN customer AS c ON c.id = customer_id ORDER BY o.id",
    )
    .fetch_all(&pool)
    .await?;
    let distinct: HashSet<i64> = orders.iter().map(|order| order.id).collect();
    let copied = orders.iter().filter(|order| order.note == "copied" && order.id > ids[999]).count();
    check(
        distinct.len() == 2000 && copied == 1000 && orders.iter().all(|order| order.customer == "Ada"),
        "a join over the foreign key reads them into structs",
    );

    query("INSERT INTO orders VALUES (77, 1, 'fixture')").execute(&pool).await?;
    let next: i64 = query_scalar("INSERT INTO orders (customer_id, note) VALUES (1, 'x') RETURNING id")
        .fetch_one(&pool)
        .await?;
    check(next > BIG, "a fixture with an id of its own; new ids stay snowflakes");

    sqlx::migrate!().run(&pool).await?;
    check(true, "the migrations run again find nothing to do (sqlx compares no schemas)");
    Ok(())
}
