//! Which attempts were answered last: a set that forgets its oldest member.
//!
//! Asked once a call of a log of any length, so it has to stay in the processor's cache: numbers that lie close
//! together, which is what answered attempts do, share a line of bits.

use std::collections::{HashMap, VecDeque};

use model::Seq;

/// How many attempts are remembered: the note whether an answer could be delivered follows it closely.
const REMEMBERED: usize = 65_536;
/// Numbers a block covers: the bits of one cache line.
const BLOCK: u64 = 512;

/// The attempts that were answered last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Recent {
    /// By number divided by [`BLOCK`]; no block is empty.
    blocks: HashMap<u64, [u64; 8]>,
    order: VecDeque<Seq>,
}

impl Recent {
    /// Remembers an attempt, and forgets the oldest if there are too many.
    pub(super) fn add(&mut self, attempt: Seq) {
        let (word, bit) = place(attempt);
        let block = self.blocks.entry(attempt / BLOCK).or_default();
        let Some(word) = block.get_mut(word).filter(|word| **word & bit == 0) else {
            return;
        };
        *word |= bit;
        self.order.push_back(attempt);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, attempt: Seq) {
        let (word, bit) = place(attempt);
        let Some(block) = self.blocks.get_mut(&(attempt / BLOCK)) else {
            return;
        };
        if let Some(word) = block.get_mut(word) {
            *word &= !bit;
        }
        if *block == [0; 8] {
            self.blocks.remove(&(attempt / BLOCK));
        }
    }

    /// Tells whether an attempt is remembered.
    pub(super) fn has(&self, attempt: Seq) -> bool {
        let (word, bit) = place(attempt);
        let block = self.blocks.get(&(attempt / BLOCK));
        block
            .and_then(|block| block.get(word))
            .is_some_and(|word| word & bit != 0)
    }
}

/// Where an attempt's bit is in its block.
fn place(attempt: Seq) -> (usize, u64) {
    let bit = attempt % BLOCK;
    (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Numbers far apart and close together, more than are remembered.
    fn answered() -> impl Iterator<Item = Seq> {
        (1..150_000_u64).map(|turn| {
            let far = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            if turn % 3 == 0 { far } else { turn * 4 }
        })
    }

    #[test]
    fn it_holds_what_a_set_with_a_queue_would_hold() {
        let (mut set, mut queue) = (HashSet::new(), VecDeque::new());
        let mut recent = Recent::default();

        for attempt in answered() {
            recent.add(attempt);
            if set.insert(attempt) {
                queue.push_back(attempt);
            }
            if queue.len() > REMEMBERED {
                set.remove(&queue.pop_front().unwrap());
            }
            assert_eq!(recent.has(attempt), set.contains(&attempt));
        }

        assert_eq!(recent.order, queue);
        for attempt in answered().flat_map(|attempt| [attempt, attempt + 1]) {
            assert_eq!(recent.has(attempt), set.contains(&attempt), "{attempt}");
        }
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let mut recent = Recent::default();

        (0..2 * REMEMBERED as u64).for_each(|turn| recent.add(turn));

        assert_eq!(recent.blocks.len() as u64, REMEMBERED as u64 / BLOCK);
        assert!(recent.blocks.values().all(|block| *block != [0; 8]));
    }
}
