//! Mutations of texts. A seed determines the mutations. The module needs no libraries, so that tests with servers can use it as well.

/// Requests as servers send them.
pub const QUESTIONS: [&str; 12] = [
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":"Introduce"}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":0,"nanos":100000000},"ask":{"Reserve":[{"tag":"t","create":false,"demand":{"saved_range":null,"pace":{"step":100,"multiplier":1},"lasted":{"secs":3,"nanos":5},"target":{"secs":900,"nanos":0},"waited_lately":true,"prefetch":50,"high_water_mark":null,"received":null,"share":null,"most":null,"clock":null}}]}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":0,"nanos":100000000},"ask":{"Reserve":[{"tag":"t","create":false,"demand":{"saved_range":{"version":4,"day":null,"first":91,"count":10,"increment":1},"pace":{"step":0,"multiplier":1},"lasted":null,"target":{"secs":900,"nanos":0},"waited_lately":false,"prefetch":50,"high_water_mark":[0,700],"received":[0,90],"share":null,"most":null,"clock":null}}]}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":0,"nanos":100000000},"ask":{"Reserve":[{"tag":"dated","create":false,"demand":{"saved_range":null,"pace":{"step":0,"multiplier":1},"lasted":null,"target":{"secs":900,"nanos":0},"waited_lately":false,"prefetch":50,"high_water_mark":null,"received":null,"share":null,"most":null,"clock":null}},{"tag":"t","create":false,"demand":{"saved_range":null,"pace":{"step":0,"multiplier":1},"lasted":null,"target":{"secs":900,"nanos":0},"waited_lately":false,"prefetch":50,"high_water_mark":null,"received":null,"share":null,"most":null,"clock":null}}]}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":0,"nanos":100000000},"ask":{"Reserve":[{"tag":"made","create":true,"demand":{"saved_range":null,"pace":{"step":0,"multiplier":1},"lasted":null,"target":{"secs":900,"nanos":0},"waited_lately":false,"prefetch":50,"high_water_mark":null,"received":null,"share":{"index":1,"of":12},"most":null,"clock":null}}]}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"Lease":{"entry":{"datacenter":0,"token":77,"duration":{"secs":86400,"nanos":0},"now":"2026-01-01T00:00:00Z","last":null,"holder":{"system_identifier":7,"timeline":1,"host":"a","port":5432,"directory":"/d","layout":"41/5/5/12 epoch=2020-01-01"}},"policy":"Reuse","token":null,"except":[1,2],"capacity":32,"preferred":null,"max_clock_skew":{"secs":2000000000,"nanos":0}}}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"Lease":{"entry":{"datacenter":3,"token":78,"duration":{"secs":60,"nanos":0},"now":"2026-01-01T00:00:00Z","last":"2025-12-01T00:00:00Z","holder":{"system_identifier":8,"timeline":1,"host":"b","port":null,"directory":"/e","layout":"sonyflake"}},"policy":"Queue","token":78,"except":[],"capacity":65536,"preferred":{"worker_id":5,"shares":8,"only":true},"max_clock_skew":{"secs":2000000000,"nanos":0}}}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"Lease":{"entry":{"datacenter":0,"token":79,"duration":{"secs":60,"nanos":0},"now":"1767225600000000","last":null,"holder":{"system_identifier":9,"timeline":1,"host":"c","port":1,"directory":"/f","layout":"41/0/10/12"}},"policy":"Disposable","token":null,"except":[],"capacity":1024,"preferred":null,"max_clock_skew":{"secs":2000000000,"nanos":0}}}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"Renew":{"worker_id":0,"token":77,"entry":{"datacenter":0,"token":80,"duration":{"secs":86400,"nanos":0},"now":"2026-01-01T00:00:00Z","last":null,"holder":{"system_identifier":7,"timeline":1,"host":"a","port":5432,"directory":"/d","layout":"41/5/5/12"}}}}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"Release":{"datacenter":0,"worker_id":0,"token":77,"from":"2026-01-01T00:00:00Z"}}}"#,
    r#"{"version":1,"registry":{"identity":"7/5/16400","timeline":1},"timeout":{"secs":1,"nanos":0},"ask":{"Tags":{"after":"a"}}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"HandOver":{"rows":[{"tag":"t","period":null,"max_id":9}],"received":[{"tag":"t","reached":[0,9]}],"share":null}}}"#,
];

/// Replacements for a value: extreme values and invalid ones.
const VALUES: [&str; 30] = [
    "0",
    "-1",
    "1",
    "7",
    "100",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e999",
    "0.5",
    "-0",
    "null",
    "true",
    "\"\"",
    "\"9223372036854775807\"",
    "\"-9223372036854775808\"",
    "\"9998-12-31T23:59:59Z\"",
    "\"\\u0000\\u0007\\u001b\"",
    "[]",
    "{}",
    "[[[[[[[[]]]]]]]]",
    "\"\\ud800\"",
];

/// A sequence of mutations.
pub struct Mutator(u64);

impl Mutator {
    /// Mutations that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Xorshift (Marsaglia 2003).
    fn next(&mut self) -> u64 {
        for shift in [(13, false), (7, true), (17, false)] {
            self.0 ^= if shift.1 { self.0 >> shift.0 } else { self.0 << shift.0 };
        }
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % bound.max(1)
    }

    /// Mutates one of these texts up to three times. One text in four stays unchanged.
    pub fn mutate(&mut self, texts: &[&str]) -> String {
        let mut text = texts[self.below(texts.len())].as_bytes().to_vec();
        for _ in 0..self.below(4) {
            text = self.once(text, texts);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn once(&mut self, mut text: Vec<u8>, texts: &[&str]) -> Vec<u8> {
        let at = self.below(text.len());
        match self.below(10) {
            0 if !text.is_empty() => text[at] ^= 1 << self.below(8),
            1 if !text.is_empty() => {
                text.remove(at);
            }
            2 => text.insert(at, b"{}[]\":,0129eE-\\xn\x00\x7f\xff"[self.below(20)]),
            3 => text.truncate(at),
            4 => {
                // The text's beginning, followed by the end of another text.
                let other = texts[self.below(texts.len())].as_bytes();
                text.truncate(at);
                text.extend_from_slice(&other[self.below(other.len())..]);
            }
            5 => {
                // A piece of the text, repeated.
                let end = (at + self.below(60)).min(text.len());
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece);
            }
            6 => {
                let (long, letter) = (self.below(2_000), b"x 0[{\x07"[self.below(6)]);
                text.splice(at..at, std::iter::repeat_n(letter, long));
            }
            _ => {
                // Another value replaces the next value.
                let value = VALUES[self.below(VALUES.len())].as_bytes();
                let begins = (at..text.len()).find(|slot| text[*slot] == b':').map_or(0, |slot| slot + 1);
                let ends = (begins..text.len()).find(|slot| b",}]".contains(&text[*slot])).unwrap_or(begins);
                text.splice(begins..ends, value.iter().copied());
            }
        }
        text
    }
}
