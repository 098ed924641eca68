//! The layouts of the systems whose ids people already have.

/// Names and layouts, as each system's source or documentation gives them. A preset never changes its
/// meaning: functions that take a layout as text are IMMUTABLE in SQL.
///
/// Where a system computes its epoch in the time zone of its process (Baidu, `ShardingSphere`), the preset
/// is UTC; write the layout out with its own `epoch=` where the process ran elsewhere. Instagram's 41 ticks
/// include the sign bit of a bigint: 40 are left to ids that are not negative, which end in 2046.
pub const PRESETS: [(&str, &str); 16] = [
    ("twitter", "41/5/5/12 epoch=2010-11-04T01:42:54.657Z"),
    ("leaf", "41/0/10/12 epoch=2010-11-04T01:42:54.657Z"),
    ("bwmarrin", "41/0/10/12 epoch=2010-11-04T01:42:54.657Z"),
    ("shardingsphere", "41/0/10/12 epoch=2016-11-01"),
    ("baidu", "28/0/22/13 unit=1s epoch=2016-05-20"),
    ("stateless", "38/0/15/10 epoch=2017-12-21"),
    ("cosid", "41/0/10/12 epoch=2019-12-24T16:00:00Z"),
    ("cosid_second", "31/0/10/22 unit=1s epoch=2019-12-24T16:00:00Z"),
    ("javascript", "41/0/3/9 epoch=2019-12-24T16:00:00Z"),
    ("javascript_second", "31/0/3/19 unit=1s epoch=2019-12-24T16:00:00Z"),
    ("yitter", "51/0/6/6 epoch=2020-02-19T18:20:02Z"),
    ("sonyflake", "39/8s/0/16 unit=10ms epoch=2025-01-01"),
    ("sonyflake_v1", "39/8s/0/16 unit=10ms epoch=2014-09-01"),
    ("discord", "41/5/5/12 epoch=2015-01-01"),
    ("instagram", "40/0/13/10 epoch=2011-08-24T21:07:01.721Z"),
    ("pgedge", "41/12s/0/10 epoch=2023-01-01"),
];

/// The layout text of a preset.
pub(super) fn find(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// All names, for a hint.
pub(super) fn names() -> String {
    PRESETS.map(|(name, _)| name).join(", ")
}
