//! What somebody may have meant.

/// Says that a name is not known, which ones are, and the nearest.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match near(name, known) {
        Some(near) => format!(
            "unknown {what}; did you mean {near}? allowed: {}",
            list(known)
        ),
        None => format!("unknown {what}; allowed: {}", list(known)),
    }
}

/// Names in a row: `a, b or c`.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// The longest name that a suggestion is looked for.
const NAME_MAX: usize = 64;

/// The name that somebody may have meant.
pub(super) fn near<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    (name.len() <= NAME_MAX).then(|| nearest(name, known))?
}

/// The name that is fewest changes away, if that is few for its length.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = |known: &&str| distance(name, known);
    let near = known.iter().copied().min_by_key(far)?;
    (far(&near) <= (near.len() / 3).max(1)).then_some(near)
}

/// Letters to insert, drop, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (row, letter) in a.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, &other) in b.iter().enumerate() {
            let cell = |line: &[usize], column: usize| line.get(column).copied();
            let replace = cell(&last, column).map(|cost| cost + usize::from(letter != other));
            let drop = cell(&last, column + 1).map(|cost| cost + 1);
            let insert = cell(&line, column).map(|cost| cost + 1);
            let neighbour = column.checked_sub(1).and_then(|left| b.get(left));
            let swapped = previous == Some(other) && neighbour == Some(&letter);
            let swap = column.checked_sub(1).filter(|_| swapped);
            let swap = swap.and_then(|left| cell(&before, left).map(|cost| cost + 1));
            let least = [replace, drop, insert, swap].into_iter().flatten().min();
            line.push(least.unwrap_or(usize::MAX));
        }
        before = std::mem::replace(&mut last, line);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let known = ["limit", "window", "local_cap"];
        for (name, near) in [
            ("limt", Some("limit")),
            ("windwo", Some("window")),
            ("local-cap", Some("local_cap")),
            ("xyzzy", None),
        ] {
            assert_eq!(nearest(name, &known), near, "{name}");
        }
    }

    #[test]
    fn a_swap_of_neighbours_is_one_change() {
        assert_eq!(distance("windwo", "window"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
