//! The distribution of a number over points.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// The distribution of a whole number over points. JSON shows `mean` and `max`, which are `null`
/// for no points, and `histogram`: the points in each of [`Spread::BUCKETS`], up to the last bucket
/// with points.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    sum: u64,
    max: u64,
    histogram: Histogram,
}

/// The number of points in each bucket. A report has thirty for each function.
#[derive(Clone, Debug)]
enum Histogram {
    /// Of a function with few points.
    Few([u16; Spread::BUCKETS.len()]),
    Many(Box<[u64; Spread::BUCKETS.len()]>),
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::Few([0; Spread::BUCKETS.len()])
    }
}

impl Histogram {
    fn counts(&self) -> [u64; Spread::BUCKETS.len()] {
        match self {
            Histogram::Few(counts) => counts.map(u64::from),
            Histogram::Many(counts) => **counts,
        }
    }

    fn add(&mut self, bucket: usize, points: u64) {
        if let Histogram::Few(counts) = self {
            let sum = u64::from(counts[bucket]).saturating_add(points);
            match u16::try_from(sum) {
                Ok(sum) => return counts[bucket] = sum,
                Err(_) => *self = Histogram::Many(Box::new(self.counts())),
            }
        }
        if let Histogram::Many(counts) = self {
            counts[bucket] += points;
        }
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.counts() == other.counts()
    }
}

impl Eq for Histogram {}

impl Spread {
    /// The numbers that each bucket of the histogram counts.
    pub const BUCKETS: [&str; 9] = ["0", "1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65+"];

    /// The number of points in each bucket.
    pub fn histogram(&self) -> [u64; Spread::BUCKETS.len()] {
        self.histogram.counts()
    }

    /// Adds the number of one point.
    pub fn add(&mut self, number: u64) {
        self.sum += number;
        self.max = self.max.max(number);
        // Each bucket from 2 on reaches up to the next power of two.
        let bucket = match number {
            0 | 1 => number as usize,
            more => 1 + (u64::BITS - (more - 1).leading_zeros()) as usize,
        };
        self.histogram.add(bucket.min(Spread::BUCKETS.len() - 1), 1);
    }

    /// Adds all points of another distribution.
    pub fn merge(&mut self, other: &Spread) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        let theirs = other.histogram().into_iter().enumerate();
        theirs.for_each(|(bucket, points)| self.histogram.add(bucket, points));
    }

    /// The mean. `None` for no points.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    /// The maximum. `None` for no points.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The number of points.
    pub fn count(&self) -> u64 {
        self.histogram().iter().sum()
    }
}

impl FromIterator<u64> for Spread {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Spread {
        let mut spread = Spread::default();
        numbers.into_iter().for_each(|number| spread.add(number));
        spread
    }
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("mean", &self.mean())?;
        map.serialize_entry("max", &self.max())?;
        // Most functions have small numbers alone: without the empty buckets at the end, the report
        // on a large program is half as long.
        let histogram = self.histogram();
        let used = histogram.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        map.serialize_entry("histogram", &histogram[..used])?;
        map.end()
    }
}
