//! A shard's ids, compared with the server's hash partitioning.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use pgrx::prelude::*;
    use snowflake_ids_core::Shard;

    /// Ids of both signs and of any size.
    const IDS: &str = "SELECT i * 987654321987 FROM generate_series(-2000, 2000) i UNION ALL
         SELECT snowflake_nextval() FROM generate_series(1, 4000) UNION ALL
         SELECT unnest(ARRAY[0, 1, -1, 2147483647, 2147483648, -2147483648, -2147483649, 4294967295, 4294967296,
             9223372036854775807, -9223372036854775808])";

    /// Compares with `satisfies_hash_partition`. Some moduli are powers of two.
    #[pg_test]
    fn ids_are_on_the_shards_that_the_server_says() {
        Spi::run("CREATE TABLE hashed (id bigint) PARTITION BY HASH (id)").unwrap();
        for (modulus, remainder) in
            [(1, 0), (2, 1), (3, 2), (7, 0), (16, 3), (100, 42), (128, 127), (1_024, 1), (65_536, 9)]
        {
            let shard = Shard::new(modulus, remainder).unwrap();
            let rows = format!(
                "SELECT id, satisfies_hash_partition('hashed'::regclass, {modulus}, {remainder}, id) FROM ({IDS}) s (id)"
            );
            let fits = Spi::connect(|client| {
                let rows = client.select(&rows, None, &[]).unwrap();
                rows.map(|row| (row.get::<i64>(1).unwrap().unwrap(), row.get::<bool>(2).unwrap().unwrap()))
                    .collect::<Vec<_>>()
            });
            assert!(fits.len() > 8_000);
            for (id, said) in fits {
                assert_eq!(shard.fits(id), said, "{id} and {shard}");
            }
        }
    }
}
