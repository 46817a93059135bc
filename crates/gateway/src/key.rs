//! The id a write carries to the remote side: derived from run and call, so that both sides can find it.

use hmac::{Hmac, KeyInit, Mac};
use model::{CallId, RequestKey, SessionId, hex};
use sha2::Sha256;

/// Bytes of the code that are shown. 128 bits: nobody meets another's id by chance.
const SHOWN: usize = 16;

/// Derives a call's request id.
///
/// An HMAC and not a plain hash: the remote side sees it, and must not learn run and call from it, nor be
/// able to guess the next one.
pub(crate) fn request_key(
    secret: &[u8; 32],
    session: SessionId,
    call: CallId,
) -> Option<RequestKey> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(b"lychgate/request-id/v1\0");
    mac.update(&session.to_bytes());
    mac.update(&call.to_bytes());
    let code = mac.finalize().into_bytes();
    let shown = code.get(..SHOWN)?;
    Some(RequestKey(format!("lych-{}", hex(shown))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_the_same_for_the_same_call_and_differs_for_every_other() {
        let key = |secret: u8, run: u8, call: u8| {
            request_key(
                &[secret; 32],
                SessionId::from_bytes([run; 10]),
                CallId::from_bytes([call; 10]),
            )
            .unwrap()
        };

        assert_eq!(key(1, 2, 3), key(1, 2, 3));
        assert_ne!(key(1, 2, 3), key(1, 2, 4));
        assert_ne!(key(1, 2, 3), key(1, 4, 3));
        assert_ne!(key(1, 2, 3), key(4, 2, 3));
    }
}
