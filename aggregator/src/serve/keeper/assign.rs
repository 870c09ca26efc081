//! Which member should have which group: all members come to the same, from nothing but
//! who is there.
//!
//! Each group goes to the member that it likes best (rendezvous hashing) and that has
//! not its part of the groups yet. So the parts are even, and a member that comes or
//! goes moves little else.

use limiter::key::{HashSeed, KeyHasher};

use crate::shared::{GROUPS, Member};

/// The place among `members` of who should have each group. `members` are sorted.
pub(super) fn assign(members: &[Member]) -> Vec<Option<usize>> {
    let most = (GROUPS as usize).div_ceil(members.len().max(1));
    let mut load = vec![0_usize; members.len()];
    let mut best = |group| {
        let places = members.iter().enumerate().zip(&load);
        let free = places.filter(|(_, load)| **load < most);
        let best = free.max_by_key(|((_, member), _)| score(&member.id, group));
        let place = best.map(|((place, _), _)| place)?;
        if let Some(load) = load.get_mut(place) {
            *load = load.saturating_add(1);
        }
        Some(place)
    };
    (0..GROUPS).map(&mut best).collect()
}

fn score(member: &str, group: u32) -> u128 {
    let mut hasher = KeyHasher::new(HashSeed::default());
    hasher.value(member.as_bytes());
    hasher.value(&group.to_le_bytes());
    hasher.finish().0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize) -> Vec<Member> {
        let member = |n| Member {
            id: format!("member-{n}"),
            url: String::new(),
        };
        (0..count).map(member).collect()
    }

    fn parts(count: usize) -> Vec<usize> {
        let assigned = assign(&members(count));
        let of = |place| assigned.iter().filter(|to| **to == Some(place)).count();
        (0..count).map(of).collect()
    }

    #[test]
    fn every_group_has_one_member_and_no_member_has_more_than_its_part() {
        assert_eq!(assign(&[]), vec![None; GROUPS as usize]);
        for count in 1..=20 {
            let parts = parts(count);
            assert_eq!(parts.iter().sum::<usize>(), GROUPS as usize);
            let most = (GROUPS as usize).div_ceil(count);
            assert!(parts.iter().all(|part| *part <= most), "{parts:?}");
        }
    }

    #[test]
    fn a_member_that_goes_moves_few_groups_but_its_own() {
        let all = members(4);
        let before = assign(&all);
        let after = assign(&all[..3]);
        let moved = before.iter().zip(&after);
        let moved = moved.filter(|(was, is)| was.is_some_and(|was| was < 3) && was != is);
        assert!(moved.count() <= 6);
    }
}
