//! The form and the bounds of requests and responses. `fuzz_wire` shows that what was accepted can be written and read back.

use crate::reservation::demand;
use serde_json::Value;
use serde_json::value::RawValue;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::accept::RequestError;
use snowflake_ids_core::registry::forks::{Fork, Forks};
use snowflake_ids_core::registry::wire::{
    Entry, LeaseRequest, Leased, MAX_EXCEPT, MAX_FORKS, MAX_WANTS, ReceivedTag, RegistryName, Request,
    RequestBody, ReserveRequest, Response, ResponseBody, Stranger, VERSION,
};
use snowflake_ids_core::server::lease::{Holder, LeaseError, Policy};
use snowflake_ids_core::tag::definition::{Exhausted, Range};
use snowflake_ids_core::tag::reservation::{Demand, Outcome, Reserved, SavedRange, Share, Unfit};
use snowflake_ids_core::tag::segment::{Period, Supply};
use snowflake_ids_core::tag::step::Pace;
use std::time::Duration;

fn registry(identity: &str, timeline: u32) -> RegistryName {
    RegistryName { identity: identity.into(), timeline, ..RegistryName::default() }
}

fn request(ask: RequestBody) -> Request {
    Request {
        version: VERSION,
        registry: Some(registry("7/5/16400", 2)),
        timeout: Duration::from_secs(4),
        ask,
    }
}

fn answer(said: ResponseBody) -> Response {
    Response { registry: registry("7/5/16400", 2), clock: UnixMicros(1_770_000_000_000_001), said }
}

fn there_and_back(request: &Request) -> Request {
    let text = request.to_text().unwrap();
    assert!(text.is_ascii(), "any encoding can hold it: {text}");
    Request::from_text(&text).unwrap().expect("it is of this version")
}

#[test]
fn the_same_registry_or_its_successor_is_known_again() {
    let seen = registry("a", 3);
    assert_eq!(registry("a", 3).check(&seen), Ok(()));
    assert_eq!(registry("a", 4).check(&seen), Ok(()));
    assert_eq!(registry("a", 2).check(&seen), Err(Stranger::Former { timeline: 2, seen: 3 }));
    assert_eq!(registry("b", 3).check(&seen), Err(Stranger::Another));
    assert_eq!(registry("b", 2).check(&seen), Err(Stranger::Another), "its timelines are none of ours");
}

#[test]
fn a_fork_that_was_left_is_a_former_primary() {
    let of = |timeline, fork| RegistryName { fork: Some(fork), ..registry("a", timeline) };
    let first = registry("a", 1).after(&of(2, 10)).unwrap();
    assert_eq!(first, of(2, 10));
    assert_eq!(first.after(&of(2, 10)), None);
    // Another standby of the first primary.
    let second = first.after(&of(2, 20)).unwrap();
    assert_eq!(second, RegistryName { left: vec![10], ..of(2, 20) });
    assert_eq!(of(2, 10).check(&second), Err(Stranger::Left { timeline: 2 }));
    assert_eq!([second.after(&of(2, 10)), second.after(&registry("a", 1))], [None, None]);
    assert_eq!(second.after(&of(3, 30)), Some(RegistryName { left: vec![10, 20], ..of(3, 30) }));
    let longest = (100..300).fold(second, |seen, fork| seen.after(&of(3, fork)).unwrap());
    assert_eq!((longest.left.len(), longest.left.last()), (MAX_FORKS, Some(&298)));
}

#[test]
fn a_registry_records_the_forks_that_it_lacks() {
    let recorded = |number, timeline| Fork { number, timeline };
    let forks = Forks(vec![recorded(1, Some(2)), recorded(9, None)]);
    let seen = RegistryName { fork: Some(3), left: vec![1, 9, 2, 3], ..registry("a", 2) };
    assert_eq!(forks.unknown(&seen), Ok(vec![2, 3]));
    assert_eq!((forks.of(2), forks.of(3), forks.promotions(2)), (Some(1), None, 3));
    let full = Forks((10..).take(MAX_FORKS - 1).map(|number| recorded(number, None)).collect());
    assert_eq!(full.unknown(&seen), Err(Stranger::Forks));
    assert_eq!(full.unknown(&RegistryName { fork: Some(1), ..registry("a", 2) }), Ok(vec![1]));
}

#[test]
fn a_question_has_this_form() {
    let demand = Demand {
        saved_range: Some(SavedRange {
            version: 4,
            day: None,
            range: Range { first: 91, count: 10, increment: 1 },
        }),
        pace: Pace { step: 100, multiplier: 1 },
        received: Some((0, 90)),
        share: Some(Share { index: 0, of: 2 }),
        ..demand()
    };
    let want = ReserveRequest { tag: "gr\u{fc}n".into(), create: true, demand };
    let text = request(RequestBody::Reserve(vec![want])).to_text().unwrap();
    // Servers of other builds read this text, so it may change only with a new VERSION.
    assert_eq!(
        text,
        concat!(
            r#"{"version":1,"registry":{"identity":"7/5/16400","timeline":2,"fork":null,"left":[]},"timeout":{"secs":4,"nanos":0},"ask":{"Reserve":[{"#,
            r#""tag":"gr\u00fcn","create":true,"demand":{"saved_range":{"version":4,"day":null,"#,
            r#""first":91,"count":10,"increment":1},"pace":{"step":100,"multiplier":1},"lasted":null,"#,
            r#""target":{"secs":900,"nanos":0},"waited_lately":false,"prefetch":50,"high_water_mark":null,"#,
            r#""received":[0,90],"share":{"index":0,"of":2},"most":null,"clock":null}}]}}"#
        )
    );
}

#[test]
fn an_answer_has_this_form() {
    let reserved = Reserved {
        supply: Supply {
            range: Range { first: 91, count: 10, increment: 1 },
            period: Period::FOREVER,
            prefetch_at: 5,
        },
        pace: Pace { step: 100, multiplier: 1 },
        left: u64::MAX,
        max_value: i64::MAX,
        version: 5,
        format: String::new(),
    };
    let text = answer(ResponseBody::Reserved(vec![Outcome::Reserved(reserved), Outcome::Unknown]))
        .to_text()
        .unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"registry":{"identity":"7/5/16400","timeline":2,"fork":null,"left":[]},"clock":"2026-02-02T02:40:00.000001Z","#,
            r#""said":{"Reserved":[{"Reserved":{"supply":{"range":{"first":91,"count":10,"increment":1},"#,
            r#""period":{"day":0,"until":"9223372036854775807"},"prefetch_at":5},"pace":{"step":100,"multiplier":1},"#,
            r#""left":18446744073709551615,"max_value":9223372036854775807,"version":5,"format":""}},"Unknown"]}}"#
        )
    );
}

#[test]
fn a_question_of_another_version_is_told_from_one_that_is_damaged() {
    let newer = r#"{"version": 2, "ask": {"Foretell": [1, 2, 3]}, "mood": "good"}"#;
    assert!(Request::from_text(newer).unwrap().is_none());
    let damaged =
        ["", "{", "[]", "null", r#"{"version":1}"#, r#"{"version":1,"ask":"Foretell"}"#, r#"{"ask":"Tags"}"#];
    for text in damaged {
        assert!(Request::from_text(text).is_err(), "{text}");
    }
}

#[test]
fn an_answer_that_says_something_unknown_is_refused() {
    let text = |said: &str| {
        format!(
            r#"{{"registry":{{"identity":"a","timeline":1}},"clock":"2026-01-01T00:00:00Z","said":{said}}}"#
        )
    };
    assert!(Response::from_text(&text(r#""Released""#)).is_ok());
    let unknown = [
        r#""Foretold""#,
        r#"{"Reserved":{}}"#,
        r#"{"Reserved":[,]}"#,
        r#"{"Renewed":"never"}"#,
        r#"{"Stranger":{"Former":{"timeline":-1,"seen":2}}}"#,
        "null",
    ];
    for said in unknown {
        assert!(Response::from_text(&text(said)).is_err(), "{said}");
    }
    for text in ["", "ERROR", "[]", &text(r#""Released""#)[1..]] {
        assert!(Response::from_text(text).is_err(), "{text}");
    }
}

/// A later release may add fields under the same version.
#[test]
fn what_is_told_in_addition_is_passed_over() {
    let question = r#"{"version":1,"registry":{"identity":"a","timeline":1,"port":5432},"timeout":{"secs":1,"nanos":0},"ask":"Introduce","mood":"good"}"#;
    let question = Request::from_text(question).unwrap().unwrap();
    assert_eq!(question.registry, Some(registry("a", 1)));
    assert!(matches!(question.ask, RequestBody::Introduce));
    let said = r#"{"registry":{"identity":"a","timeline":1},"clock":"2026-01-01T00:00:00Z","load":3,"said":"Released"}"#;
    assert!(matches!(Response::from_text(said).unwrap().said, ResponseBody::Released));
}

#[test]
fn tags_with_any_letters_pass_through_ascii() {
    for tag in ["", "a\"b\\c\n", "\u{0}", "na\u{ef}ve", "\u{65e5}\u{672c}", "\u{1f40c}\u{10ffff}"] {
        let row = serde_json::json!({ "tag": tag }).to_string();
        let rows = vec![RawValue::from_string(row).unwrap()];
        let asked = there_and_back(&request(RequestBody::HandOver { rows, received: vec![], share: None }));
        let RequestBody::HandOver { rows, .. } = asked.ask else { panic!("{asked:?}") };
        let row: Value = serde_json::from_str(rows[0].get()).unwrap();
        assert_eq!(row["tag"], tag);
    }
}

/// One outcome that makes no sense leaves all other outcomes valid.
#[test]
fn each_outcome_of_an_answer_is_understood_by_itself() {
    let good = r#"{"Exhausted":{"max_value":7}}"#;
    let bad = [
        r#""Dreamt""#,
        r#"{"Reserved":{}}"#,
        r#"{"Unfit":{"SetBack":{"received":1.5,"max_id":1,"later":false}}}"#,
        r#"{"Garbled":"by me"}"#,
        "null",
        "1e999",
    ];
    for bad in bad {
        let text = format!(
            r#"{{"registry":{{"identity":"a","timeline":1}},"clock":"2026-01-01T00:00:00Z","said":{{"Reserved":[{good},{bad},"Unknown"]}}}}"#
        );
        let ResponseBody::Reserved(outcomes) = Response::accept(&text).unwrap().said else {
            panic!("{text}")
        };
        assert_eq!(outcomes[0], Outcome::Exhausted(Exhausted { max_value: 7 }));
        assert!(matches!(&outcomes[1], Outcome::Garbled(why) if !why.is_empty()), "{bad}: {outcomes:?}");
        assert_eq!(outcomes[2], Outcome::Unknown);
    }
}

#[test]
fn what_a_registry_says_can_be_shown() {
    let noise = format!("{}\u{1b}[31m", "\u{7}\u{9b}".repeat(100_000));
    let none = LeaseError {
        message: noise.clone(),
        detail: noise.clone(),
        hint: noise.clone(),
        holders: noise.clone(),
    };
    let told =
        Response::accept(&answer(ResponseBody::Leased(Leased::None(none))).to_text().unwrap()).unwrap();
    let ResponseBody::Leased(Leased::None(LeaseError { message, detail, hint, holders })) = told.said else {
        panic!()
    };
    let tag = answer(ResponseBody::HandedOver(Some((noise.clone(), Unfit::Redated { dated: true }))));
    let ResponseBody::HandedOver(Some((tag, _))) = Response::accept(&tag.to_text().unwrap()).unwrap().said
    else {
        panic!()
    };
    let who = Response { registry: registry(&noise, 1), ..answer(ResponseBody::Released) };
    let identity = Response::accept(&who.to_text().unwrap()).unwrap().registry.identity;
    let own = answer(ResponseBody::Introduced { version: noise.clone(), layout: noise.clone() });
    let ResponseBody::Introduced { version, layout } =
        Response::accept(&own.to_text().unwrap()).unwrap().said
    else {
        panic!()
    };
    let unknown = Response::accept(&serde_json::to_string(&serde_json::json!({ noise.clone(): 1 })).unwrap());
    let garbled = format!("{:?}", answer(ResponseBody::Released)).replace("Released", &noise);
    let garbled = Response::accept(&garbled).unwrap_err();
    for text in
        [message, detail, hint, holders, tag, identity, version, layout, unknown.unwrap_err(), garbled]
    {
        assert!(text.chars().count() <= 2_048 && !text.chars().any(char::is_control), "{text:?}");
    }
}

fn bounds() -> LeaseRequest {
    let holder = Holder {
        system_identifier: 1,
        timeline: 1,
        host: "a".into(),
        port: Some(5432),
        directory: "/a".into(),
        layout: "41/5/5/12 epoch=2020-01-01".into(),
    };
    let now = UnixMicros(1_770_000_000_000_000);
    let entry =
        Entry { datacenter: 31, token: 1, duration: Duration::from_hours(24), now, last: Some(now), holder };
    LeaseRequest {
        entry,
        policy: Policy::Reuse,
        token: None,
        except: vec![],
        capacity: 32,
        preferred: None,
        max_clock_skew: Duration::from_secs(5),
        former: None,
    }
}

/// Every field of a request is bounded.
#[test]
fn a_question_out_of_bounds_is_refused_and_says_which_field() {
    let want = |tag: &str| ReserveRequest { tag: tag.into(), create: true, demand: demand() };
    let leases = |change: &dyn Fn(&mut LeaseRequest)| {
        let mut demand = bounds();
        change(&mut demand);
        RequestBody::Lease(Box::new(demand))
    };
    let reserves = |change: &dyn Fn(&mut Demand)| {
        let mut want = want("t");
        change(&mut want.demand);
        RequestBody::Reserve(vec![want])
    };
    let hands_over = |tag: &str, share| {
        let received = vec![ReceivedTag { tag: tag.to_owned(), reached: (0, i64::MIN) }];
        RequestBody::HandOver { rows: vec![], received, share }
    };
    let renews = |worker_id| RequestBody::Renew { worker_id, token: 1, entry: bounds().entry };
    let long = "x".repeat(256);
    let good = [
        leases(&|_| ()),
        leases(&|demand| demand.entry.holder.host = "\u{1f40c}".repeat(255)),
        leases(&|demand| demand.except = (0..65_536).collect()),
        reserves(&|_| ()),
        RequestBody::Reserve(vec![want("t"); MAX_WANTS]),
        RequestBody::Reserve(vec![want(&"\u{1f40c}".repeat(128))]),
        renews(31),
        hands_over("t", Some(Share { index: 1, of: 2 })),
        RequestBody::Tags { after: Some("t".into()) },
    ];
    for ask in good {
        let text = request(ask).to_text().unwrap();
        assert!(
            matches!(Request::accept(&text), Ok(Some(_))),
            "{:?}: {text:.300}",
            Request::accept(&text).err()
        );
    }
    let bad = [
        ("host", leases(&|demand| demand.entry.holder.host.clone_from(&long))),
        ("data directory", leases(&|demand| demand.entry.holder.directory.clone_from(&long))),
        ("layout", leases(&|demand| demand.entry.holder.layout.clone_from(&long))),
        ("layout", leases(&|demand| demand.entry.holder.layout = "nonsense".into())),
        ("timeline", leases(&|demand| demand.entry.holder.timeline = u32::MAX)),
        ("port", leases(&|demand| demand.entry.holder.port = Some(-1))),
        ("duration", leases(&|demand| demand.entry.duration = Duration::MAX)),
        ("clock", leases(&|demand| demand.entry.now = UnixMicros(i64::MAX))),
        ("last id", leases(&|demand| demand.entry.last = Some(UnixMicros(i64::MIN)))),
        ("datacenter id", leases(&|demand| demand.entry.datacenter = 32)),
        ("number of worker ids", leases(&|demand| demand.capacity = 33)),
        ("number of worker ids", leases(&|demand| demand.capacity = 0)),
        ("number of worker ids", leases(&|demand| demand.capacity = u32::MAX)),
        ("max_clock_skew", leases(&|demand| demand.max_clock_skew = Duration::MAX)),
        ("worker id", renews(32)),
        ("tag", RequestBody::Reserve(vec![want("")])),
        ("tag", RequestBody::Reserve(vec![want(&"x".repeat(129))])),
        ("pace", reserves(&|demand| demand.pace.multiplier = u32::MAX)),
        ("time since the last reservation", reserves(&|demand| demand.lasted = Some(Duration::MAX))),
        ("target", reserves(&|demand| demand.target = Duration::MAX)),
        ("prefetch", reserves(&|demand| demand.prefetch = 101)),
        ("share", reserves(&|demand| demand.share = Some(Share { index: 0, of: 1 }))),
        ("share", reserves(&|demand| demand.share = Some(Share { index: 2, of: 2 }))),
        ("share", reserves(&|demand| demand.share = Some(Share { index: 0, of: u32::MAX }))),
        ("share", hands_over("t", Some(Share { index: 0, of: 0 }))),
        ("tag", hands_over("", None)),
        ("tag", hands_over(&"x".repeat(129), None)),
        ("tag", RequestBody::Tags { after: Some(long.clone()) }),
        (
            "release",
            RequestBody::Release { datacenter: 0, worker_id: 0, token: 1, from: UnixMicros(i64::MAX) },
        ),
        (
            "worker id",
            RequestBody::Release { datacenter: 0, worker_id: u32::MAX, token: 1, from: UnixMicros(0) },
        ),
    ];
    for (named, ask) in bad {
        let told = format!("{ask:?}");
        match Request::accept(&request(ask).to_text().unwrap()) {
            Err(RequestError::OutOfBounds { field, .. }) => assert_eq!(field, named, "{told:.300}"),
            other => panic!("{named} is let pass: {other:?}"),
        }
    }
    let timeout = Request { timeout: Duration::MAX, ..request(RequestBody::Introduce) };
    assert!(Request::accept(&timeout.to_text().unwrap()).is_err());
    let identity = Request { registry: Some(registry(&long, 1)), ..request(RequestBody::Introduce) };
    assert!(Request::accept(&identity.to_text().unwrap()).is_err());
}

/// Lists that would use more memory than their text are refused while they are read.
#[test]
fn lists_that_no_server_sends_are_given_up() {
    let except = vec![0_u32; MAX_EXCEPT + 1];
    let lease = RequestBody::Lease(Box::new(LeaseRequest { except, ..bounds() }));
    assert!(matches!(Request::accept(&request(lease).to_text().unwrap()), Err(RequestError::Garbled(_))));
    let rows = format!("[{}0]", "0,".repeat(100_000));
    for (rows, received) in [(rows.as_str(), "[]"), ("[]", rows.as_str())] {
        let hand_over = format!(
            r#"{{"version":1,"registry":null,"timeout":{{"secs":1,"nanos":0}},"ask":{{"HandOver":{{"rows":{rows},"received":{received},"share":null}}}}}}"#
        );
        assert!(matches!(Request::accept(&hand_over), Err(RequestError::Garbled(_))));
    }
    let said = format!(
        r#"{{"registry":{{"identity":"a","timeline":1}},"clock":"2026-01-01T00:00:00Z","said":{{"Reserved":{rows}}}}}"#
    );
    assert!(Response::accept(&said).is_err());
}
