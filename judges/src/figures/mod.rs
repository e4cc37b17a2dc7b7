//! Figures of measurements in rounds: estimates, and tables of them.

pub mod statistics;
pub mod table;

use std::collections::BTreeMap;

/// A value for each round.
pub type Series = BTreeMap<u32, f64>;

/// The ratios of two series, in the rounds that both have.
pub fn ratios(of: &Series, to: &Series) -> Series {
    let ratio = |(round, of): (&u32, &f64)| Some((*round, of / to.get(round)?));
    of.iter().filter_map(ratio).collect()
}

/// The lesser of two series, in the rounds that both have.
pub fn lesser(of: &Series, other: &Series) -> Series {
    let least = |(round, of): (&u32, &f64)| Some((*round, of.min(*other.get(round)?)));
    of.iter().filter_map(least).collect()
}

#[cfg(test)]
mod tests {
    use super::{lesser, ratios};

    #[test]
    fn series_meet_in_the_rounds_that_both_have() {
        let (of, to) = ([(1, 3.0), (2, 8.0)].into(), [(2, 4.0), (3, 1.0)].into());
        assert_eq!(ratios(&of, &to), [(2, 2.0)].into());
        assert_eq!(lesser(&of, &to), [(2, 4.0)].into());
    }
}
