//! Requests and responses that were tampered with. Nothing panics on any content, and accepted content is within bounds. The
//! mutations follow from a seed, so that failures can be repeated.

mod mutate;

use crate::reservation::demand;
use mutate::{Mutator, QUESTIONS};
use snowflake_ids_core::registry::wire::{
    LeaseRequest, Leased, MAX_EXCEPT, MAX_WANTS, Request, RequestBody, Response, ResponseBody,
};
use snowflake_ids_core::server::lease::{Choice, LeaseError, LeaseRow as Worker, Preferred, Search};
use snowflake_ids_core::tag::definition::{Definition, MAX_STEP};
use snowflake_ids_core::tag::reservation::{Demand, Outcome, TagRow};
use snowflake_ids_core::tag::segment::Period;
use snowflake_ids_core::{Field, Layout, UnixMicros};
use std::fmt::Debug;
use std::time::Duration;

const QUESTIONS_TRIED: u64 = 100_000;
const ANSWERS_TRIED: u64 = 20_000;
/// The time when the responses arrive, on day 20,000 after the Unix epoch.
const NOW: UnixMicros = UnixMicros(20_000 * 86_400_000_000 + 1);

/// The period of a dated tag: a day of 2024.
const TODAY: Period = Period { day: 20_000, until: UnixMicros(20_001 * 86_400_000_000) };

/// The whole content, for comparison.
fn all(of: &impl Debug) -> String {
    format!("{of:?}")
}

fn rows() -> [TagRow; 3] {
    let definition = Definition {
        max_id: 500,
        start: 1,
        step: 100,
        max_step: 1_000,
        increment: 1,
        remainder: 0,
        max_value: i64::MAX,
    };
    let row = |definition, period| TagRow {
        definition,
        period,
        format: "{n}".into(),
        version: 7,
        tag_generation: 3,
    };
    [
        row(definition, Period::FOREVER),
        row(Definition { increment: 12, remainder: 1, start: 1_000_000_000, ..definition }, Period::FOREVER),
        row(definition, TODAY),
    ]
}

/// Acts on a request as a registry would.
fn obey(ask: &RequestBody) {
    match ask {
        RequestBody::Reserve(wants) => {
            assert!(wants.len() <= MAX_WANTS);
            for want in wants {
                assert!((1..=128).contains(&want.tag.chars().count()));
                for row in rows() {
                    reserve(&row, &want.demand);
                }
            }
        }
        RequestBody::Lease(demand) => lease(demand),
        RequestBody::Renew { worker_id, entry, .. } => {
            let layout: Layout = entry.holder.layout.parse().unwrap();
            assert!(u64::from(*worker_id) <= layout.max(Field::Worker));
            assert!(
                entry.holder.host.chars().count() <= 255 && entry.holder.directory.chars().count() <= 255
            );
        }
        RequestBody::HandOver { received, .. } => {
            assert!(received.iter().all(|received| (1..=128).contains(&received.tag.chars().count())));
        }
        RequestBody::Tags { .. } | RequestBody::Introduce | RequestBody::Release { .. } => {}
    }
}

fn reserve(row: &TagRow, demand: &Demand) {
    let Ok(admitted) = row.admit(demand.clone(), Some((0, 510))) else { return };
    let Outcome::Reserved(reserved) = row.reserve(&admitted, 8) else { return };
    let Definition { max_id, start, max_step, increment, .. } = row.definition;
    let (first, last) = (reserved.supply.range.first, reserved.supply.range.last());
    // A segment begins at most two segments of the largest size above the row's `max_id`, and ends at most three above it.
    let from = max_id.max(start - 1).max(510);
    assert!(first > max_id || admitted.saved_range.is_some(), "{row:?} {demand:?}");
    assert!(last <= from + 3 * max_step * increment, "a row is moved to {last}: {row:?} {demand:?}");
}

fn lease(demand: &LeaseRequest) {
    let LeaseRequest { entry, policy, capacity, .. } = demand;
    let layout: Layout = entry.holder.layout.parse().unwrap();
    assert!(u64::from(capacity - 1) <= layout.max(Field::Worker), "{capacity} of {layout}");
    assert!(u64::from(entry.datacenter) <= layout.max(Field::Datacenter));
    assert!(demand.except.len() <= MAX_EXCEPT);
    assert!(entry.holder.host.chars().count() <= 255 && entry.holder.directory.chars().count() <= 255);
    let held =
        |worker_id| Worker { worker_id, token: Some(5), expiry: UnixMicros(i64::MAX), leased: UnixMicros(0) };
    let rows: Vec<Worker> = (0..3).map(held).collect();
    let search = Search {
        policy: *policy,
        own: [demand.token, Some(entry.token)],
        except: &demand.except,
        preferred: Preferred::shared(None, *capacity, 0),
        capacity: *capacity,
        now: NOW,
        former_leases: None,
    };
    let chosen = search.choose(&rows).as_ref().map(Choice::worker_id);
    assert!(chosen.is_none_or(|worker_id| worker_id < *capacity && !demand.except.contains(&worker_id)));
}

#[test]
fn no_question_does_harm() {
    let mut accepted = 0_u64;
    for seed in 0..QUESTIONS_TRIED {
        let text = Mutator::new(seed).mutate(&QUESTIONS);
        if let Ok(Some(request)) = Request::accept(&text) {
            assert!(request.timeout <= Duration::from_mins(15), "seed {seed}");
            let said = request.to_text().unwrap();
            assert!(said.is_ascii(), "any encoding can hold it: {said}");
            // Rows are kept as they were written, but for their letters.
            if text.is_ascii() {
                assert_eq!(all(&Request::from_text(&said).unwrap().unwrap()), all(&request), "seed {seed}");
            }
            obey(&request.ask);
            accepted += 1;
        }
    }
    println!("{accepted} of {QUESTIONS_TRIED} were accepted");
    assert!(accepted > QUESTIONS_TRIED / 100, "what is refused shows little: only {accepted} were accepted");
}

fn answers() -> Vec<String> {
    let said = [
        r#"{"Introduced":{"version":"1.0.0","layout":"41/5/5/12"}}"#.to_owned(),
        r#"{"Tags":[{"tag":"a","max_id":5,"increment":1,"remainder":0}]}"#.to_owned(),
        r#"{"HandedOver":["t",{"Share":{"share":{"index":1,"of":2},"increment":1,"remainder":0}}]}"#.to_owned(),
        [
            r#"{"Reserved":[{"Reserved":{"supply":{"range":{"first":501,"count":100,"increment":1},"#,
            r#""period":{"day":0,"until":"9223372036854775807"},"prefetch_at":50},"pace":{"step":100,"multiplier":1},"#,
            r#""left":1000,"max_value":9223372036854775807,"version":8,"format":"{n}"}},"Locked","Unknown"]}"#,
        ]
        .concat(),
        [
            r#"{"Reserved":[{"Reserved":{"supply":{"range":{"first":501,"count":100,"increment":1},"#,
            r#""period":{"day":20000,"until":"2024-10-05T00:00:00Z"},"prefetch_at":50},"pace":{"step":100,"multiplier":1},"#,
            r#""left":1000,"max_value":9223372036854775807,"version":8,"format":"{YYYY}{MM}{DD}-{n}"}}]}"#,
        ]
        .concat(),
        r#"{"Reserved":[{"Exhausted":{"max_value":7}},{"Unfit":{"SetBack":{"received":5,"max_id":1,"later":false}}}]}"#
            .to_owned(),
        r#"{"Leased":{"Taken":{"choice":{"Own":{"worker_id":1,"token":5,"expiry":"2024-10-05T00:00:00Z","leased":"2024-10-04T00:00:00Z"}},"expiry":"2024-10-05T00:00:00Z"}}}"#.to_owned(),
        r#"{"Leased":{"None":{"message":"no worker id is free","detail":"d","hint":"h","holders":"a"}}}"#.to_owned(),
        r#"{"Leased":{"Taken":{"choice":{"New":{"worker_id":2}},"expiry":"2024-10-05T00:00:00Z"}}}"#.to_owned(),
        r#"{"Leased":"Missed"}"#.to_owned(),
        r#"{"Renewed":"2024-10-05T00:00:00Z"}"#.to_owned(),
        r#""Released""#.to_owned(),
        r#"{"Version":2}"#.to_owned(),
        r#"{"Stranger":{"Former":{"timeline":1,"seen":2}}}"#.to_owned(),
    ];
    let whole = |said| {
        format!(
            r#"{{"registry":{{"identity":"7/5/16400","timeline":2}},"clock":"2024-10-04T00:00:00.000001Z","said":{said}}}"#
        )
    };
    said.into_iter().map(whole).collect()
}

/// Acts on a response as a node would. Accepted ranges are new to the node, of the present day, and of a possible size.
fn believe(answer: &Response, demands: &[Demand]) -> usize {
    let mut believed = 0;
    match &answer.said {
        ResponseBody::Reserved(outcomes) => {
            for (outcome, demand) in
                outcomes.iter().flat_map(|outcome| demands.iter().map(move |demand| (outcome, demand)))
            {
                match outcome {
                    Outcome::Reserved(reserved) if reserved.check(demand, answer.clock, NOW).is_ok() => {
                        let range = reserved.supply.range;
                        assert!(
                            range.first >= 0
                                && range.last() <= reserved.max_value
                                && range.last() >= range.first
                        );
                        assert!((1..=MAX_STEP).contains(&i64::from(range.count)));
                        let period = reserved.supply.period;
                        assert!(
                            period == Period::FOREVER
                                || period.day == TODAY.day
                                || (19_630..=20_001).contains(&period.day)
                        );
                        assert!(demand.received.is_none_or(|(day, id)| {
                            (day == 0) == (period == Period::FOREVER) && (day, id) < (period.day, range.first)
                        }));
                        assert!(
                            !reserved.format.chars().any(char::is_control) && reserved.format.len() <= 64
                        );
                        believed += 1;
                    }
                    Outcome::Unfit(unfit) => assert!(unfit.to_string().len() + unfit.hint("t").len() < 1_000),
                    _ => {}
                }
            }
        }
        ResponseBody::Leased(Leased::None(LeaseError { message, detail, hint, holders })) => {
            for text in [message, detail, hint, holders] {
                assert!(text.chars().count() <= 2_048 && !text.chars().any(char::is_control));
            }
        }
        _ => {}
    }
    believed
}

fn reads_back(answer: &Response) {
    let said = answer.to_text().unwrap();
    assert!(said.is_ascii(), "any encoding can hold it: {said}");
    assert_eq!(all(&Response::from_text(&said).unwrap()), all(answer));
}

#[test]
fn no_answer_does_harm() {
    let received = |received| Demand { received, ..demand() };
    let demands =
        [demand(), received(Some((0, 500))), received(Some((20_000, 500))), received(Some((0, 501)))];
    let (mut understood, mut believed) = (0, 0);
    let answers = answers();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    for answer in &answers {
        reads_back(&Response::accept(answer).unwrap());
        // A broken connection may leave a part of a response.
        for cut in 0..answer.len() {
            assert!(Response::from_text(&answer[..cut]).is_err(), "{cut} bytes of {answer}");
        }
    }
    for seed in 0..ANSWERS_TRIED {
        let text = Mutator::new(seed).mutate(&answers);
        match Response::accept(&text) {
            Ok(answer) => {
                understood += 1;
                // A garbled outcome cannot be written.
                if text.is_ascii() && !all(&answer).contains("Garbled") {
                    reads_back(&answer);
                }
                believed += believe(&answer, &demands);
            }
            Err(why) => assert!(why.chars().count() <= 131 && !why.chars().any(char::is_control), "{why:?}"),
        }
    }
    println!("{understood} of {ANSWERS_TRIED} were understood, and reservations believed {believed} times");
    assert!(understood > 1_000 && believed > 100, "{understood} understood, {believed} believed");
}
