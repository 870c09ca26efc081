//! The tables, one row a second, within 80 columns.

use crate::plan::{CLIENTS, Limits, POPS};
use crate::tally::Tally;

/// What a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// What each client was admitted in the present window, against its limit.
    Windows(Limits),
    /// What was admitted in the second, and what the POPs say has leaked.
    Leaks,
}

/// The table's head.
pub(crate) fn head(view: View) -> String {
    match view {
        View::Windows(_) => {
            let others = CLIENTS.iter().skip(1).map(|client| client.name);
            let [bob, carol, first, second] = short(others);
            format!(
                "          alice, this window so far           the others, all POPs together\n\
                 window  pop-1  pop-2  pop-3   sum/limit  {bob:>8} {carol:>8} {first:>8} {second:>8}"
            )
        }
        View::Leaks => "         admitted in this second     leaked so far, as the POPs count it\n\
                 second  pop-1  pop-2  pop-3   sum      pop-1  pop-2  pop-3     sum"
            .to_owned(),
    }
}

/// Names that fit: an address by its last number.
fn short<'a>(names: impl Iterator<Item = &'a str>) -> [String; CLIENTS.len() - 1] {
    let mut out: [String; CLIENTS.len() - 1] = Default::default();
    for (short, name) in out.iter_mut().zip(names) {
        *short = match name.rsplit_once('.') {
            Some((_, last)) => format!("ip .{last}"),
            None => name.to_owned(),
        };
    }
    out
}

/// The row of a second that has passed.
pub(crate) fn windows(tally: &Tally, limits: Limits, second: u64, window_s: u64) -> String {
    let (window, into) = (second / window_s, second % window_s + 1);
    let mut row = format!("{:>6}", format!("{into}/{window_s} s"));
    for (place, client) in CLIENTS.iter().enumerate() {
        let cell = tally.window(place, window);
        let limit = limits.of(client.rule);
        if place == 0 {
            for admitted in cell.admitted {
                row.push_str(&format!(" {admitted:>6}"));
            }
            row.push_str(&format!(" {:>11} ", format!("{}/{limit}", cell.sum())));
        } else {
            row.push_str(&format!(" {:>8}", format!("{}/{limit}", cell.sum())));
        }
    }
    if into == window_s {
        row.push_str("  =");
    }
    row
}

/// The row of a second that has passed, with what has leaked by now.
pub(crate) fn leaks(admitted: [u64; POPS], leaked: [u64; POPS], number: u64) -> String {
    let columns = |values: [u64; POPS]| values.map(|value| format!(" {value:>6}")).concat();
    format!(
        "{number:>6}{} {:>5}    {} {:>7}",
        columns(admitted),
        admitted.iter().sum::<u64>(),
        columns(leaked),
        leaked.iter().sum::<u64>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_in_80_columns() {
        let limits = Limits {
            key: 750,
            address: 210,
        };
        let tally = Tally::new(10);
        let mut lines = vec![
            windows(&tally, limits, 9, 10),
            leaks([1_000; POPS], [10_000; POPS], 10),
        ];
        for view in [View::Windows(limits), View::Leaks] {
            lines.extend(head(view).lines().map(ToOwned::to_owned));
        }
        for line in lines {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
