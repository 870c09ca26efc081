//! Messages with known keys, cut and put together again.

use limiter::key::CounterKey;
use limiter::wire::{Batch, ClaimGroup};

use super::*;

const RULE: u64 = 7;

/// A key of this partition.
fn key(partition: u32, n: u128) -> [u8; 16] {
    CounterKey(u128::from(partition) << 122 | n).to_bytes()
}

fn claims(keys: &[[u8; 16]]) -> ClaimGroup {
    ClaimGroup {
        rule: RULE,
        keys: keys.concat().into(),
        held_micro: (0..keys.len() as u64).collect(),
        ..ClaimGroup::default()
    }
}

fn message(partitions: &[u32], claims: Vec<ClaimGroup>) -> Vec<u8> {
    let batch = |partition: &u32| Batch {
        partition: *partition,
        sequence: 1,
        ..Batch::default()
    };
    SyncRequest {
        message: 9,
        batches: partitions.iter().map(batch).collect(),
        claims,
        ..SyncRequest::default()
    }
    .encode_to_vec()
}

fn cut(shards: &Shards, body: Vec<u8>) -> Vec<(u32, SyncRequest)> {
    let parts = shards.cut(body).into_iter();
    parts
        .map(|part| {
            (
                part.shard,
                SyncRequest::decode(part.body.as_slice()).unwrap(),
            )
        })
        .collect()
}

#[test]
fn each_object_hears_of_its_own_keys_and_of_no_other() {
    let keys = [key(0, 1), key(1, 2), key(4, 3), key(5, 4), key(63, 5)];
    let parts = cut(&Shards::new(4, 0), message(&[0, 1, 5], vec![claims(&keys)]));
    let told: Vec<_> = parts
        .iter()
        .map(|(shard, part)| {
            let batches: Vec<u32> = part.batches.iter().map(|batch| batch.partition).collect();
            let claims: Vec<_> = part.claims.iter().collect();
            let held: Vec<u64> = claims
                .iter()
                .flat_map(|group| group.held_micro.clone())
                .collect();
            (*shard, batches, held)
        })
        .collect();
    let expected = [
        (0, vec![0], vec![0, 2]),
        (1, vec![1, 5], vec![1, 3]),
        (3, vec![], vec![4]),
    ];
    assert_eq!(told, expected);
    assert!(parts.iter().all(|(_, part)| part.message == 9));
    assert_eq!(parts[0].1.claims[0].keys, [keys[0], keys[2]].concat());
}

#[test]
fn columns_that_were_left_out_stay_out() {
    let parts = cut(&Shards::new(2, 0), message(&[], vec![claims(&[key(1, 1)])]));
    assert!(parts[0].1.claims[0].wanted.is_empty());
}

#[test]
fn a_message_that_says_nothing_goes_to_one_object() {
    let parts = cut(&Shards::new(4, 6), message(&[], Vec::new()));
    let asked: Vec<u32> = parts.iter().map(|(shard, _)| *shard).collect();
    assert_eq!(asked, [2]);
}

#[test]
fn who_says_nothing_and_is_not_answered_asks_the_next_object() {
    let mut shards = Shards::new(4, 7);
    let mut asked = || {
        let (shard, _) = cut(&shards, message(&[], Vec::new()))[0];
        shards.miss(shard);
        // Another's silence is of no matter.
        shards.miss(shard);
        shard
    };
    assert_eq!([asked(), asked(), asked()], [3, 0, 1]);
}

#[test]
fn one_object_hears_everything_as_it_is() {
    let body = message(&[0, 63], vec![claims(&[key(5, 1)])]);
    let parts = Shards::new(1, 3).cut(body.clone());
    assert_eq!(parts, [Part { shard: 0, body }]);
}

#[test]
fn each_object_is_told_when_it_was_last_heard_itself() {
    let mut shards = Shards::new(2, 0);
    let answer = SyncReply {
        now_us: 77,
        ..SyncReply::default()
    };
    let heard = shards.hear(1, answer.encode_to_vec(), 0);
    assert_eq!(heard, Heard::Reply(answer.encode_to_vec()));
    let parts = cut(&shards, message(&[0, 1], Vec::new()));
    let told: Vec<u64> = parts.iter().map(|(_, part)| part.heard_us).collect();
    assert_eq!(told, [0, 77]);
}

#[test]
fn an_object_with_older_rules_is_not_believed() {
    let answer = SyncReply {
        rules_revision: 4,
        ..SyncReply::default()
    };
    let body = answer.encode_to_vec();
    assert_eq!(Shards::new(2, 0).hear(0, body.clone(), 5), Heard::Outdated);
    assert_eq!(
        Shards::new(2, 0).hear(0, body.clone(), 4),
        Heard::Reply(body)
    );
}

fn answer(revision: u64) -> SyncReply {
    SyncReply {
        rules_revision: revision,
        rules: Some(limiter::wire::RuleSet::default()),
        ..SyncReply::default()
    }
}

/// Whether the rules of each answer in turn reach a source that was deployed with
/// revision 9.
fn taken(answers: &[(u32, u64)]) -> Vec<bool> {
    let mut shards = Shards::new(2, 0).below_an_aggregator();
    let answers = answers.iter().map(|(shard, revision)| {
        let body = answer(*revision).encode_to_vec();
        let Heard::Reply(body) = shards.hear(*shard, body, 9) else {
            return false;
        };
        SyncReply::decode(body.as_slice()).unwrap().rules.is_some()
    });
    answers.collect()
}

#[test]
fn rules_from_above_take_the_place_of_newer_ones_that_the_source_was_deployed_with() {
    assert_eq!(taken(&[(0, 4), (1, 4), (0, 5)]), [true; 3]);
}

#[test]
fn an_object_that_has_not_heard_of_the_latest_rules_yet_does_not_bring_back_the_old_ones() {
    let answers = [(0, 4), (1, 5), (0, 4), (0, 5), (1, 5)];
    assert_eq!(taken(&answers), [true, true, false, true, true]);
}

#[test]
fn where_the_aggregator_above_goes_back_so_does_the_source() {
    let answers = [(0, 7), (1, 7), (0, 3), (1, 3)];
    assert_eq!(taken(&answers), [true; 4]);
}
