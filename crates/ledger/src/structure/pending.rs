//! The attempts without a known end, by their numbers.
//!
//! Asked for nearly every record of a log of any length, and nearly always about an attempt of a moment ago: those
//! are kept apart, in a short row in the order of their numbers, so that the others need not be searched.

use std::collections::{BTreeMap, VecDeque};

use model::Seq;

/// How long the row is: more calls are rarely under way at once.
const ROW: usize = 64;

/// Values by the number of their attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pending<T> {
    /// The newest, in the order of their numbers.
    row: VecDeque<(Seq, T)>,
    old: BTreeMap<Seq, T>,
    /// The highest number that was ever added.
    highest: Option<Seq>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self {
            row: VecDeque::new(),
            old: BTreeMap::new(),
            highest: None,
        }
    }
}

impl<T> Pending<T> {
    /// Adds an attempt, or replaces it.
    pub(super) fn add(&mut self, attempt: Seq, value: T) {
        if self.highest.is_some_and(|highest| attempt <= highest) {
            // A log's numbers rise; those in a certificate do as long as nobody else made it.
            self.remove(attempt);
            self.old.insert(attempt, value);
            return;
        }
        self.highest = Some(attempt);
        if self.row.len() == ROW
            && let Some((oldest, value)) = self.row.pop_front()
        {
            self.old.insert(oldest, value);
        }
        self.row.push_back((attempt, value));
    }

    /// Returns what is known of an attempt.
    pub(super) fn get_mut(&mut self, attempt: Seq) -> Option<&mut T> {
        match self.in_row(attempt) {
            Some(at) => self.row.get_mut(at).map(|(_, value)| value),
            None => self.old.get_mut(&attempt),
        }
    }

    /// Forgets an attempt.
    pub(super) fn remove(&mut self, attempt: Seq) {
        match self.in_row(attempt) {
            Some(at) => drop(self.row.remove(at)),
            None => drop(self.old.remove(&attempt)),
        }
    }

    fn in_row(&self, attempt: Seq) -> Option<usize> {
        self.row
            .binary_search_by_key(&attempt, |(seq, _)| *seq)
            .ok()
    }

    /// Returns all, the oldest first.
    pub(super) fn into_all(self) -> impl Iterator<Item = (Seq, T)> {
        let mut all = self.old;
        all.extend(self.row);
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mostly rising numbers, as in a log, and some from anywhere.
    fn acts() -> impl Strategy<Value = Vec<(Seq, bool)>> {
        let act = (0u64..300, any::<bool>(), prop::bool::weighted(0.3));
        prop::collection::vec(act, 0..400).prop_map(|acts| {
            let numbered = (0..).zip(acts);
            numbered
                .map(|(turn, (any, rises, gone))| (if rises { turn } else { any }, gone))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_would_hold(acts in acts()) {
            let (mut pending, mut map) = (Pending::default(), BTreeMap::new());
            for (turn, (seq, gone)) in acts.into_iter().enumerate() {
                if gone {
                    pending.remove(seq);
                    map.remove(&seq);
                } else {
                    pending.add(seq, turn);
                    map.insert(seq, turn);
                }
                for asked in [seq, seq + 1, seq / 2] {
                    prop_assert_eq!(pending.get_mut(asked), map.get_mut(&asked));
                }
            }

            prop_assert!(pending.into_all().eq(map));
        }
    }
}
