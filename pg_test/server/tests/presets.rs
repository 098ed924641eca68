//! Presets: ids are those of the systems they are named after, bit for bit.

use anyhow::Result;
use snowflake_ids_server_tests::{Server, sql};

/// A preset as its system describes itself: name, epoch and unit in milliseconds, widths of ticks, node
/// and sequence, and whether the sequence stands above the node.
type Known = (&'static str, i64, i64, u32, u32, u32, bool);

const TWITTER: i64 = 1_288_834_974_657;
const COSID: i64 = 1_577_203_200_000;

const KNOWN: [Known; 16] = [
    ("twitter", TWITTER, 1, 41, 10, 12, false),
    ("leaf", TWITTER, 1, 41, 10, 12, false),
    ("bwmarrin", TWITTER, 1, 41, 10, 12, false),
    ("shardingsphere", 1_477_958_400_000, 1, 41, 10, 12, false),
    ("baidu", 1_463_702_400_000, 1000, 28, 22, 13, false),
    ("stateless", 1_513_814_400_000, 1, 38, 15, 10, false),
    ("cosid", COSID, 1, 41, 10, 12, false),
    ("cosid_second", COSID, 1000, 31, 10, 22, false),
    ("javascript", COSID, 1, 41, 3, 9, false),
    ("javascript_second", COSID, 1000, 31, 3, 19, false),
    ("yitter", 1_582_136_402_000, 1, 51, 6, 6, false),
    ("sonyflake", 1_735_689_600_000, 10, 39, 16, 8, true),
    ("sonyflake_v1", 1_409_529_600_000, 10, 39, 16, 8, true),
    ("discord", 1_420_070_400_000, 1, 41, 10, 12, false),
    ("instagram", 1_314_220_021_721, 1, 41, 13, 10, false),
    ("pgedge", 1_672_531_200_000, 1, 41, 10, 12, true),
];

#[test]
fn ids_of_every_preset_have_the_bits_of_their_system() -> Result<()> {
    let (_server, mut client) = Server::builder().with_session()?;
    for (name, epoch, unit, tick_bits, node_bits, sequence_bits, sequence_first) in KNOWN {
        // A tick, a node and a sequence with a distinct pattern each, ends set so that a bit off shows.
        let tick = (1 << (tick_bits - 2)) | 0x1_2345;
        let node = (1 << (node_bits - 1)) | 1;
        let sequence = (1 << (sequence_bits - 1)) | 3;
        let low =
            if sequence_first { sequence << node_bits | node } else { node << sequence_bits | sequence };
        let id: i64 = tick << (node_bits + sequence_bits) | low;
        let row = client.query_one(
            &format!(
                "select (extract(epoch from snowflake_timestamp({id}, '{name}')) * 1000)::bigint,
                 snowflake_datacenter_id({id}, '{name}'), snowflake_worker_id({id}, '{name}'),
                 snowflake_sequence({id}, '{name}')"
            ),
            &[],
        )?;
        assert_eq!(row.get::<_, i64>(0), epoch + tick * unit, "{name}: time of {id}");
        assert_eq!(row.get::<_, i32>(3), i32::try_from(sequence)?, "{name}: sequence of {id}");
        let (datacenter, worker): (i32, i32) = (row.get(1), row.get(2));
        let split = [("twitter", 5), ("discord", 5)].iter().find(|(split, _)| *split == name);
        let whole =
            split.map_or(i64::from(worker), |(_, bits)| i64::from(datacenter) << bits | i64::from(worker));
        assert_eq!(whole, node, "{name}: datacenter {datacenter}, worker {worker} of {id}");

        let composed: i64 = sql::one(
            &mut client,
            &format!(
                "select snowflake_compose(snowflake_timestamp({id}, '{name}'), {datacenter}, {worker},
                 {sequence}, '{name}')"
            ),
        )?;
        assert_eq!(composed, id, "{name}: composed again");
    }
    Ok(())
}
