//! One input as several texts: its lines, the last with all that is left.

/// The first `N` lines and the rest; missing ones are empty.
pub(crate) fn lines<const N: usize>(data: &[u8]) -> ([&[u8]; N], &[u8]) {
    let mut rest = data;
    let lines = [(); N].map(|()| {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = match end.and_then(|end| rest.split_at_checked(end)) {
            Some((line, after)) => (line, after.get(1..).unwrap_or_default()),
            None => (rest, &[][..]),
        };
        rest = after;
        line
    });
    (lines, rest)
}
