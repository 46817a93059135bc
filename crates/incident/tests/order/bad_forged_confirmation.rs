//! A refusal that nobody saw.

use incident::{Confirmation, RefusedBy};

fn main() {
    let _ = Confirmation::Refused {
        seq: 1,
        by: RefusedBy::OwnAttempt,
    };
}
