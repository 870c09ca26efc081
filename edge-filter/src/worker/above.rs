//! An object as a region of its own under an aggregator above: what it has to say there,
//! and what it makes of the answers. JavaScript carries both.

use limiter::ledger::Region;
use limiter::time::{Micros, Timestamp};
use limiter::wire::SyncRequest;

use super::abi;
use super::object::{Object, with};

/// Joins the regions of the aggregator above, under this name, and begins a life that is
/// later than the one before, whatever the clock says. Returns it. `regions`: how many
/// there were when that was last known.
pub(super) fn join(
    name: String,
    before: u64,
    regions: Option<u32>,
    now: Timestamp,
) -> Result<u64, String> {
    with(|object| {
        let now = object.now(now);
        let epoch = now.as_micros().max(before.saturating_add(1));
        let region = Region { name, epoch };
        let (ledger, mut records) = object.parts();
        ledger.join(region, now, &mut records);
        if let Some(regions) = regions {
            ledger.expect_regions(regions);
        }
        Ok(epoch)
    })
}

/// The next message for the aggregator above, if one is due: its number, and its body.
pub(super) fn report(now: Timestamp) -> Option<(u64, Vec<u8>)> {
    with(|object| {
        let now = object.now(now);
        let (ledger, mut records) = object.parts();
        let report = ledger.poll_upstream(now, &mut records);
        Ok(report.map(|report| (report.message.id, report.message.body)))
    })
    .unwrap_or_default()
}

/// Takes in the answer to a message, or that there was none. Rules in it are in force
/// from then on; true if they have a lower revision than those before.
pub(super) fn hear(id: u64, answer: Option<Vec<u8>>, now: Timestamp) -> Result<bool, String> {
    with(|object| {
        let now = object.now(now);
        let revision = object.ledger.rules().revision;
        let (ledger, mut records) = object.parts();
        match answer {
            None => ledger.upstream_unanswered(id),
            Some(body) => ledger
                .handle_upstream(id, &body, now, &mut records)
                .map_err(|error| error.to_string())?,
        }
        Ok(object.ledger.rules().revision < revision)
    })
}

/// When there will be something to say; the end of time if there is nobody above.
pub(super) fn due() -> Timestamp {
    let never = Timestamp::from_micros(u64::MAX);
    with(|object| Ok(object.ledger.upstream_timeout().unwrap_or(never))).unwrap_or(never)
}

/// How many regions the aggregator above knows of; 0 while that is not known.
pub(super) fn regions(now: Timestamp) -> u32 {
    let known = with(|object| Ok(object.ledger.upstream_stats(now)));
    let known = known.unwrap_or_default();
    known.and_then(|stats| stats.regions).unwrap_or(0)
}

/// How the object stands with the aggregator above, as JSON; null if there is none.
pub(super) fn status(object: &Object, now: Timestamp) -> serde_json::Value {
    let millis = |span: Micros| span.get() / 1_000;
    object
        .ledger
        .upstream_stats(now)
        .map_or(serde_json::Value::Null, |stats| {
            serde_json::json!({
                "away": stats.away,
                "regions": stats.regions,
                "waiting": stats.waiting,
                "alone_hits": stats.alone_hits,
                "out_of_order": stats.out_of_order,
                "last_reply_ago_ms": stats.last_reply_ago.map(millis),
                "round_trip_ms": millis(stats.round_trip),
            })
        })
}

/// Looks at a source's message before it is taken in. The rules are those of the
/// aggregator above: without them nothing can be answered, and whoever has newer ones
/// has heard that there are some.
pub(super) fn look(object: &mut Object, request: &SyncRequest) -> Result<(), String> {
    let in_force = object.ledger.rules().revision;
    if object.ledger.upstream_timeout().is_none() {
        return Ok(());
    }
    if in_force == 0 {
        let what = "there are no rules yet: the aggregator above has not been heard";
        return Err(what.to_owned());
    }
    if request.rules_revision > in_force {
        object.ledger.flush_upstream_now();
    }
    Ok(())
}

/// A message's number is microseconds since the Unix epoch: JavaScript has it whole.
#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of this age are below 2^53"
)]
pub(super) fn number(id: u64) -> f64 {
    id as f64
}

/// Puts a message into the outbox, and returns its number; 0 if there is none.
pub(super) fn put(report: Option<(u64, Vec<u8>)>) -> f64 {
    let (id, body) = report.unwrap_or_default();
    abi::put(body);
    number(id)
}
