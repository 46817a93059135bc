//! Takes the secret out of an answer that repeats it.
//!
//! Only the exact value and its plain encodings are looked for: a search for what merely looks like a secret
//! would damage honest answers. So this is a net, not a wall: a remote side that transforms the secret, or
//! hands out another one, is not caught.

use std::ops::Range;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use memchr::memmem;
use model::Secret;
use zeroize::Zeroizing;

mod spelling;

/// Tells whether a secret is looked for in answers. One of a few letters would be found in ordinary words.
#[must_use]
pub fn is_looked_for(secret: &Secret) -> bool {
    secret.expose().len() >= SHORTEST
}

/// What is looked for.
pub(crate) struct Scrub {
    /// Looked for in every mixture of [spellings](spelling).
    values: Vec<Zeroizing<Vec<u8>>>,
    /// Looked for as they are.
    forms: Vec<Zeroizing<Vec<u8>>>,
}

/// Takes a secret out of `bytes` and tells how often it was there: for the checks of the fuzzer.
#[doc(hidden)]
#[must_use]
pub fn scrubbed(secret: &Secret, bytes: Vec<u8>) -> (Vec<u8>, usize) {
    let mut removed = 0;
    let clean = Scrub::of(secret).clean(bytes, &mut removed);
    (clean, removed)
}

impl Scrub {
    /// Looks for nothing: no secret went out.
    pub(crate) const fn nothing() -> Self {
        Self {
            values: Vec::new(),
            forms: Vec::new(),
        }
    }

    /// Tells whether it looks for anything.
    pub(crate) const fn looks(&self) -> bool {
        !self.values.is_empty()
    }

    /// Looks for these, and not for encodings of the whole.
    pub(crate) const fn of_minted(values: Vec<Zeroizing<Vec<u8>>>) -> Self {
        Self {
            values,
            forms: Vec::new(),
        }
    }

    /// Looks for this secret, if it [is one to look for](is_looked_for).
    pub(crate) fn of(secret: &Secret) -> Self {
        if !is_looked_for(secret) {
            return Self::nothing();
        }
        let secret = secret.expose();
        let mut forms = vec![
            hexadecimal(secret, |byte| format!("{byte:02x}")),
            hexadecimal(secret, |byte| format!("{byte:02X}")),
        ];
        for before in [&b""[..], b"-", b"--"] {
            forms.extend(inside_base64(&STANDARD_NO_PAD, secret, before));
            forms.extend(inside_base64(&URL_SAFE_NO_PAD, secret, before));
        }
        forms.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        forms.dedup();
        Self {
            values: vec![Zeroizing::new(secret.to_vec())],
            forms,
        }
    }

    /// Returns `bytes` without what is looked for, and adds to `removed` how often it was there.
    pub(crate) fn clean(&self, bytes: Vec<u8>, removed: &mut usize) -> Vec<u8> {
        let mut bytes = bytes;
        for value in &self.values {
            let found = spellings(&bytes, value);
            bytes = without(bytes, &found, instead_of(value), removed);
        }
        for form in &self.forms {
            let starts = memmem::find_iter(&bytes, form.as_slice());
            let found: Vec<Range<usize>> = starts.map(|at| at..at + form.len()).collect();
            bytes = without(bytes, &found, INSTEAD, removed);
        }
        bytes
    }
}

/// Where `value` stands in `bytes`, however it is spelled.
fn spellings(bytes: &[u8], value: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match spelling::spelled(rest, value) {
            Some(length) => {
                found.push(at..at + length);
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// Returns `bytes` with something else in these places, which are in order and do not overlap.
fn without(
    bytes: Vec<u8>,
    places: &[Range<usize>],
    instead: &[u8],
    removed: &mut usize,
) -> Vec<u8> {
    if places.is_empty() {
        return bytes;
    }
    let bytes = Zeroizing::new(bytes);
    *removed += places.len();
    let mut out = Vec::with_capacity(bytes.len() + places.len() * instead.len());
    let mut from = 0;
    for place in places {
        out.extend_from_slice(bytes.get(from..place.start).unwrap_or_default());
        out.extend_from_slice(instead);
        from = place.end;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    out
}

fn hexadecimal(secret: &[u8], digits: impl Fn(u8) -> String) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(secret.len() * 2));
    for byte in secret {
        out.extend_from_slice(digits(*byte).as_bytes());
    }
    out
}

/// The letters of base64 that depend on the secret alone, when so many bytes stand before it in its group.
fn inside_base64(engine: &impl Engine, secret: &[u8], before: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let padded = Zeroizing::new([before, secret].concat());
    let whole = Zeroizing::new(engine.encode(&*padded).into_bytes());
    // Six bits a letter: the first ones share bits with what stands before, the last with what stands behind.
    let first = (before.len() * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    whole
        .get(first..last)
        .map(|inner| Zeroizing::new(inner.to_vec()))
}

/// Shorter secrets are found where they are not.
const SHORTEST: usize = 8;

/// What stands in a value's place: nothing that makes the value again together with what stands beside it.
fn instead_of(value: &[u8]) -> &'static [u8] {
    let joins = (1..=value.len()).any(|count| {
        let (front, back) = (value.get(..count), value.get(value.len() - count..));
        front.is_some_and(|front| INSTEAD.ends_with(front))
            || back.is_some_and(|back| INSTEAD.starts_with(back))
    });
    if joins || memmem::find(INSTEAD, value).is_some() {
        INSTEAD_OF_THE_LIKE
    } else {
        INSTEAD
    }
}

const INSTEAD: &[u8] = b"[secret removed]";

/// No secret has such letters: the vault takes printable ASCII.
const INSTEAD_OF_THE_LIKE: &[u8] = "\u{2026}".as_bytes();

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "s3cret/\"value+1";

    fn scrub() -> Scrub {
        Scrub::of(&Secret::new(SECRET.as_bytes().to_vec()))
    }

    fn cleaned(text: &str) -> (String, usize) {
        let mut removed = 0;
        let out = scrub().clean(text.as_bytes().to_vec(), &mut removed);
        (String::from_utf8(out).unwrap(), removed)
    }

    #[test]
    fn seven_letters_are_not_looked_for_and_eight_are() {
        for (secret, looked_for) in [("s3cret7", false), ("s3cret-8", true)] {
            let secret = Secret::new(secret.as_bytes().to_vec());

            assert_eq!(is_looked_for(&secret), looked_for);
            assert_eq!(Scrub::of(&secret).looks(), looked_for);
        }
    }

    #[test]
    fn the_secret_is_taken_out_in_every_plain_encoding() {
        for text in [
            SECRET.to_owned(),
            "s3cret%2F%22value%2B1".to_owned(),
            "s3cret%2f%22value%2b1".to_owned(),
            "s3cret/%22value+1".to_owned(),
            "s3cret/&quot;value&#43;1".to_owned(),
            "\\u0073\\u0033cret/\\u0022value+1".to_owned(),
            SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            serde_json::to_string(SECRET).unwrap(),
            "s3cret\\/\\\"value+1".to_owned(),
            SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ] {
            let (out, removed) = cleaned(&format!("a{text}b{text}c"));

            assert_eq!(removed, 2, "{text}");
            assert!(!out.contains(&text), "{text}");
            assert!(out.starts_with('a') && out.ends_with('c'));
        }
    }

    #[test]
    fn what_does_not_hold_the_secret_stays_as_it_is() {
        assert_eq!(cleaned("s3cret/value"), ("s3cret/value".to_owned(), 0));
        let mut removed = 0;
        let short = Scrub::of(&Secret::new(b"the".to_vec()));
        assert_eq!(
            short.clean(b"in the end".to_vec(), &mut removed),
            b"in the end"
        );
    }

    #[test]
    fn each_place_is_counted_and_what_stands_between_them_stays() {
        let text = format!("a {SECRET} b {SECRET} c");

        let (clean, removed) = scrubbed(&Secret::new(SECRET.into()), text.into());

        assert_eq!(clean, b"a [secret removed] b [secret removed] c");
        assert_eq!(removed, 2);
    }

    #[test]
    fn what_stands_in_its_place_does_not_make_it_again() {
        for (secret, text) in [
            ("]!!!!!!!", "]!!!!!!!!!!!!!!"),
            ("!!!!!!![", "!!!!!!!!!!!!!!["),
            ("secret r", "a secret r b"),
        ] {
            let (clean, removed) = scrubbed(&Secret::new(secret.into()), text.into());

            let clean = String::from_utf8(clean).unwrap();
            assert!(removed > 0 && !clean.contains(secret), "{clean}");
        }
    }

    #[test]
    fn base64_that_is_the_secrets_alone_is_taken_out_to_its_last_letter() {
        let text = STANDARD.encode(SECRET);
        assert!(!text.ends_with('='), "no letter is shared with padding");

        assert_eq!(cleaned(&text), ("[secret removed]".to_owned(), 1));
    }

    proptest! {
        #[test]
        fn the_secret_is_found_in_base64_of_anything_around_it(before in "[a-z:]{0,9}", behind in "[a-z]{0,9}") {
            let text = STANDARD.encode(format!("{before}{SECRET}{behind}"));

            let (out, removed) = cleaned(&text);

            prop_assert_eq!(removed, 1, "{}", out);
        }
    }
}
