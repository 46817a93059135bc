//! A claim whose test runs small every day, and as large as somebody asks for with `cargo xtask prove`.

use std::{
    env,
    fs::OpenOptions,
    io::{Write, stdout},
    thread,
};

/// One run of a test named `prove_NAME`: how often, from which seed, and what came out.
#[derive(Debug)]
pub struct Proof {
    n: u64,
    seed: u64,
    state: u64,
    rows: Vec<(String, String)>,
}

/// How often; set by `cargo xtask prove`.
const N: &str = "LYCH_PROVE_N";

/// The seed; set by `cargo xtask prove`.
const SEED: &str = "LYCH_PROVE_SEED";

/// The file that the table is left in; set by `cargo xtask prove`.
const TABLE: &str = "LYCH_PROVE_TABLE";

/// The seed of every day, so that a red test is red again.
const EVERYDAY_SEED: u64 = 1;

impl Proof {
    /// Begins a proof that runs `everyday` times unless it is told otherwise.
    ///
    /// # Panics
    /// A variable that should hold a number does not.
    #[must_use]
    pub fn begin(everyday: u64) -> Self {
        let seed = number(SEED).unwrap_or(EVERYDAY_SEED);
        Self {
            n: number(N).unwrap_or(everyday),
            seed,
            state: seed,
            rows: Vec::new(),
        }
    }

    /// Returns how often.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Returns the seed; say it when something fails.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the next chance number below `bound`; zero if `bound` is.
    pub const fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine for one seed.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        if bound == 0 { 0 } else { z % bound }
    }

    /// Returns a source of chance of its own, for whoever draws from another thread.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        let state = self.below(u64::MAX);
        Self {
            n: self.n,
            seed: self.seed,
            state,
            rows: Vec::new(),
        }
    }

    /// Writes a row of the table.
    pub fn row(&mut self, what: &str, value: impl ToString) {
        self.rows.push((what.to_owned(), value.to_string()));
    }

    /// Ends the proof: the table is printed, and kept where it was asked for.
    ///
    /// # Panics
    /// The table cannot be written.
    pub fn end(self) {
        let table = self.table();
        // Nobody may be listening to a test's output.
        drop(stdout().write_all(table.as_bytes()));
        if let Some(path) = env::var_os(TABLE) {
            // A proof may have several tests; each leaves its table behind the others'.
            let file = OpenOptions::new().create(true).append(true).open(path);
            let written = file.and_then(|mut file| file.write_all(titled(&table).as_bytes()));
            written.expect("the proof's table can be written");
        }
    }

    fn table(&self) -> String {
        let head = format!(
            "| what | value |\n|---|---|\n| n | {} |\n| seed | {} |\n",
            self.n, self.seed
        );
        self.rows.iter().fold(head, |table, (what, value)| {
            format!("{table}| {what} | {value} |\n")
        })
    }
}

/// Puts the test's name above its table.
fn titled(table: &str) -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("a test without a name");
    format!("`{name}`\n\n{table}\n")
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is {text}, which is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_row_of_numbers() {
        let (mut one, mut two) = (Proof::begin(3), Proof::begin(3));

        let first: Vec<u64> = (0..50).map(|_| one.below(10)).collect();
        let second: Vec<u64> = (0..50).map(|_| two.below(10)).collect();

        assert_eq!(first, second);
        assert!((0..10).all(|digit| first.contains(&digit)), "{first:?}");
    }

    #[test]
    fn the_table_says_how_often_and_from_which_seed() {
        let mut proof = Proof::begin(3);
        proof.row("lost", 0);

        assert!(
            proof
                .table()
                .ends_with("| n | 3 |\n| seed | 1 |\n| lost | 0 |\n")
        );
    }
}
