//! Takes the secret out of an answer that repeats it.
//!
//! Only the exact value and its plain encodings are looked for: a search for what merely looks like a secret
//! would damage honest answers. So this is a net, not a wall: a remote side that transforms the secret, or
//! hands out another one, is not caught.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use memchr::memmem;
use model::Secret;
use zeroize::Zeroizing;

/// The forms of one secret that are looked for.
pub(crate) struct Scrub(Vec<Zeroizing<Vec<u8>>>);

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
        Self(Vec::new())
    }

    /// Looks for this secret. One of a few letters would be found in ordinary words, and is not looked for.
    pub(crate) fn of(secret: &Secret) -> Self {
        let secret = secret.expose();
        if secret.len() < SHORTEST {
            return Self::nothing();
        }
        let mut forms: Vec<Zeroizing<Vec<u8>>> = vec![
            Zeroizing::new(secret.to_vec()),
            encoded(secret, |byte| format!("%{byte:02X}"), is_unreserved),
            encoded(secret, |byte| format!("%{byte:02x}"), is_unreserved),
            encoded(secret, |byte| format!("{byte:02x}"), |_| false),
            encoded(secret, |byte| format!("{byte:02X}"), |_| false),
            encoded(
                secret,
                |byte| format!("\\{}", char::from(byte)),
                |byte| !b"\"\\".contains(&byte),
            ),
            encoded(
                secret,
                |byte| format!("\\{}", char::from(byte)),
                |byte| !b"\"\\/".contains(&byte),
            ),
        ];
        for before in [&b""[..], b"-", b"--"] {
            forms.extend(inside_base64(&STANDARD_NO_PAD, secret, before));
            forms.extend(inside_base64(&URL_SAFE_NO_PAD, secret, before));
        }
        forms.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        forms.dedup();
        Self(forms)
    }

    /// Returns `bytes` without the secret, and adds to `removed` how often it was there.
    pub(crate) fn clean(&self, bytes: Vec<u8>, removed: &mut usize) -> Vec<u8> {
        let mut bytes = bytes;
        for form in &self.0 {
            let found: Vec<usize> = memmem::find_iter(&bytes, form.as_slice()).collect();
            if found.is_empty() {
                continue;
            }
            *removed += found.len();
            let mut out = Vec::with_capacity(bytes.len() + found.len() * INSTEAD.len());
            let mut from = 0;
            for at in found {
                out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
                out.extend_from_slice(INSTEAD);
                from = at + form.len();
            }
            out.extend_from_slice(bytes.get(from..).unwrap_or_default());
            drop(Zeroizing::new(std::mem::replace(&mut bytes, out)));
        }
        bytes
    }
}

fn is_unreserved(byte: u8) -> bool {
    crate::path::is_unreserved(byte)
}

fn encoded(
    secret: &[u8],
    form: impl Fn(u8) -> String,
    as_it_is: impl Fn(u8) -> bool,
) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(secret.len() * 3));
    for byte in secret {
        if as_it_is(*byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(form(*byte).as_bytes());
        }
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

const INSTEAD: &[u8] = b"[secret removed]";

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
    fn the_secret_is_taken_out_in_every_plain_encoding() {
        for text in [
            SECRET.to_owned(),
            "s3cret%2F%22value%2B1".to_owned(),
            "s3cret%2f%22value%2b1".to_owned(),
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

    proptest! {
        #[test]
        fn the_secret_is_found_in_base64_of_anything_around_it(before in "[a-z:]{0,9}", behind in "[a-z]{0,9}") {
            let text = STANDARD.encode(format!("{before}{SECRET}{behind}"));

            let (out, removed) = cleaned(&text);

            prop_assert_eq!(removed, 1, "{}", out);
        }
    }
}
