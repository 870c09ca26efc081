//! The books above the regions beside theirs.

use super::*;

#[test]
fn what_regions_have_counted_and_the_books_above_have_not_or_have_twice_is_noticed() {
    let mut shared = rules().rule(0).unwrap().clone();
    shared.scope = limiter::rule::Scope::Global;
    let shared = plan::ruleset(vec![shared]).unwrap();
    let (mut above, mut disk) = (disk::ledger(), Disk::new(Micros::ZERO));
    above.set_rules(shared, at(0), disk.at(at(0)));
    let (mut one, mut other) = (World::new(), World::new());
    one.sync(World::request(1, 1, 2, 0), 1);
    other.sync(World::request(1, 1, 1, 0), 1);
    let below = [&one.ledger, &other.ledger];
    let (lost, double) = (3, 0);
    let differ = difference_between(&below, &above);
    assert_eq!(differ, Difference { lost, double });
    let told = World::request(9, 1, 5, 0);
    above.sync(told, at(2), disk.at(at(2))).unwrap();
    let (lost, double) = (0, 2);
    let differ = difference_between(&below, &above);
    assert_eq!(differ, Difference { lost, double });
}
