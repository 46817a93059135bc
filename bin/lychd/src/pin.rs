//! The PIN that shows a person's presence: kept as a slow hash inside the vault, and guessed slowly.
//!
//! It keeps out an agent that plays operator by mistake or by injected text. It does not keep out a program
//! of the same user that watches the person type it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Exit, Explain, Fault, Secret};
use scrypt::Params;
use serde::{Deserialize, Serialize};
use wire::operator::{PIN_NEEDED, SecretText};
use zeroize::Zeroizing;

/// Fewer characters than this are guessed within the tries of one sitting.
const SHORTEST: usize = 4;

/// Longer ones are no PIN; a key derivation should not be handed a megabyte.
const LONGEST: usize = 256;

/// Wrong PINs in a row that nobody waits for: people mistype.
const FREE_TRIES: u32 = 3;

/// The longest wait after a wrong PIN. Longer would let an agent lock its operator out.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// scrypt's cost (RFC 7914): 16 MiB and some ten milliseconds. The hash lies encrypted in the vault, so this
/// only has to make trying over the socket no faster than the waits below allow.
const LOG_N: u8 = 14;

/// A PIN's hash with all that is needed to check one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PinHash {
    log_n: u8,
    salt: String,
    hash: String,
}

impl PinHash {
    /// Hashes a new PIN.
    ///
    /// # Errors
    /// It is too short or too long, or the system has no randomness.
    pub(crate) fn new(pin: &Secret) -> Result<Self, Explain> {
        let length = pin.expose().len();
        if !(SHORTEST..=LONGEST).contains(&length) {
            return Err(Explain::new(
                Exit::Usage,
                Fault::Caller,
                format!("a PIN has {SHORTEST} to {LONGEST} bytes"),
            )
            .because(format!("this one has {length}"))
            .next("choose another"));
        }
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(|error| ours(&error))?;
        let hash = derive(pin, &salt, LOG_N).ok_or_else(|| ours(&"scrypt refused"))?;
        Ok(Self {
            log_n: LOG_N,
            salt: STANDARD.encode(salt),
            hash: STANDARD.encode(hash.as_slice()),
        })
    }

    /// Tells whether this is the PIN. Slow on purpose.
    pub(crate) fn is(&self, pin: &Secret) -> bool {
        let (Ok(salt), Ok(hash)) = (STANDARD.decode(&self.salt), STANDARD.decode(&self.hash))
        else {
            return false;
        };
        let Some(found) = derive(pin, &salt, self.log_n) else {
            return false;
        };
        // Every byte is looked at, so that the time tells nothing about where they differ.
        let differing = found.iter().zip(&hash).fold(0, |sum, (a, b)| sum | (a ^ b));
        hash.len() == found.len() && differing == 0
    }
}

fn derive(pin: &Secret, salt: &[u8], log_n: u8) -> Option<Zeroizing<[u8; 32]>> {
    let mut out = Zeroizing::new([0; 32]);
    let params = Params::new(log_n, 8, 1, out.len()).ok()?;
    let pin = pin.expose().get(..LONGEST.min(pin.expose().len()))?;
    scrypt::scrypt(pin, salt, &params, out.as_mut()).ok()?;
    Some(out)
}

/// Makes each wrong PIN in a row cost more time, for everybody who tries.
#[derive(Debug, Default)]
pub(crate) struct Tries(Mutex<Wrong>);

#[derive(Debug, Default)]
struct Wrong {
    in_a_row: u32,
    not_before: Option<Instant>,
}

impl Tries {
    /// Tells how long the next try has to wait.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let wrong = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = wrong.not_before?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Takes note of a try.
    pub(crate) fn tried(&self, right: bool, now: Instant) {
        let mut wrong = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if right {
            *wrong = Wrong::default();
            return;
        }
        wrong.in_a_row = wrong.in_a_row.saturating_add(1);
        let beyond = wrong.in_a_row.saturating_sub(FREE_TRIES);
        let seconds = 2_u64.saturating_pow(beyond).min(LONGEST_WAIT.as_secs());
        wrong.not_before = (beyond > 0).then(|| now + Duration::from_secs(seconds));
    }
}

/// Takes a PIN out of a request.
///
/// # Errors
/// It did not arrive whole.
pub(crate) fn of(text: &SecretText) -> Result<Secret, Explain> {
    let decoded = STANDARD.decode(text.expose()).map(Secret::new);
    decoded.map_err(|_| {
        Explain::new(Exit::Usage, Fault::Caller, "the PIN did not arrive whole").next("try again")
    })
}

pub(crate) fn needed() -> Explain {
    Explain::new(Exit::Refused, Fault::Caller, PIN_NEEDED)
        .because("it widens what agents may do, and this vault was set up with a PIN")
        .next("give it with --pin-fd N, or do this on a terminal")
}

pub(crate) fn wrong() -> Explain {
    Explain::new(Exit::Refused, Fault::Caller, "this is not the PIN")
        .because("nothing was done; the attempt is on record")
        .next("try again")
}

pub(crate) fn too_soon(left: Duration) -> Explain {
    Explain::new(
        Exit::Refused,
        Fault::Caller,
        "no PIN is looked at for a while",
    )
    .because("several wrong ones were given in a row")
    .next(format!(
        "try again in {} s",
        left.as_secs().saturating_add(1)
    ))
}

fn ours(error: &dyn std::fmt::Display) -> Explain {
    Explain::new(Exit::Failed, Fault::Ours, "the PIN cannot be hashed").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.as_bytes().to_vec())
    }

    #[test]
    fn only_the_same_pin_is_right() {
        let hash = PinHash::new(&secret("1234")).unwrap();

        assert!(hash.is(&secret("1234")));
        for wrong in ["1235", "123", "12345", ""] {
            assert!(!hash.is(&secret(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn a_damaged_hash_is_opened_by_nothing() {
        let mut hash = PinHash::new(&secret("1234")).unwrap();
        hash.hash = String::new();

        assert!(!hash.is(&secret("1234")));
    }

    #[test]
    fn a_pin_that_is_too_short_is_none() {
        assert!(PinHash::new(&secret("123")).is_err());
    }

    #[test]
    fn wrong_pins_in_a_row_cost_more_and_more_time_and_a_right_one_ends_that() {
        let tries = Tries::default();
        let now = Instant::now();
        for _ in 0..3 {
            tries.tried(false, now);
            assert_eq!(tries.wait(now), None);
        }

        tries.tried(false, now);
        let first = tries.wait(now).unwrap();
        tries.tried(false, now);
        let second = tries.wait(now).unwrap();
        for _ in 0..40 {
            tries.tried(false, now);
        }

        assert!(second > first);
        assert_eq!(tries.wait(now), Some(LONGEST_WAIT));
        assert_eq!(tries.wait(now + LONGEST_WAIT), None);
        tries.tried(true, now);
        assert_eq!(tries.wait(now), None);
    }
}
