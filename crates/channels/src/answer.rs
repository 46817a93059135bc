//! What an agent may see of an answer, and the job id in it.

use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use model::{Foreign, Unsettled};

/// Reads a body to its end, or not at all.
pub(crate) async fn read_body(mut body: Incoming, at_most: usize) -> Result<Vec<u8>, Unsettled> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // Before any room is made for it: a server can announce more than there is memory.
    if announced > at_most {
        return Err(Unsettled::AnswerUnreadable);
    }
    let mut out = Vec::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| why(&error))?;
        if let Ok(data) = frame.into_data() {
            if out.len() + data.len() > at_most {
                return Err(Unsettled::AnswerUnreadable);
            }
            out.extend_from_slice(&data);
        }
    }
    Ok(out)
}

/// Says what an error of the HTTP library means for a request that may have left.
pub(crate) fn why(error: &hyper::Error) -> Unsettled {
    if error.is_parse() {
        Unsettled::AnswerUnreadable
    } else {
        Unsettled::ConnectionBroke
    }
}

/// Returns the header fields without what belongs to the connection, and without what would hand the agent a
/// credential of the remote side, unless the operation is meant to.
pub(crate) fn visible(headers: &HeaderMap, mints: bool) -> Vec<(String, Vec<u8>)> {
    headers
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            let hidden = HIDDEN.contains(&name) || name.starts_with("proxy-");
            !hidden && (mints || !HANDS_OUT.contains(&name))
        })
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect()
}

/// Finds the remote side's own id in a JSON answer.
pub(crate) fn remote_id(body: &[u8], pointer: &str) -> Option<Foreign> {
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    let id = match json.pointer(pointer)? {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) => number.to_string(),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => return None,
    };
    (!id.is_empty() && id.len() <= LONGEST_ID).then(|| Foreign::new(id))
}

/// Tells whether a body is in a form that cannot be searched as it is.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let codings = |name| {
        let values = headers.get_all(name).into_iter();
        values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
    };
    let mut all = codings(header::CONTENT_ENCODING).chain(codings(header::TRANSFER_ENCODING));
    all.any(|coding| {
        let coding = coding.trim_ascii();
        let plain = [&b""[..], b"identity", b"chunked"];
        !plain.iter().any(|plain| coding.eq_ignore_ascii_case(plain))
    })
}

const HIDDEN: [&str; 6] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const HANDS_OUT: [&str; 3] = ["authentication-info", "set-cookie", "set-cookie2"];

/// Ids are short; what is longer is something else, and would be kept in the log.
const LONGEST_ID: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_letter_at_least_and_is_no_longer_than_ids_are() {
        let found = |id: &str| remote_id(format!(r#"{{"id":"{id}"}}"#).as_bytes(), "/id");
        let longest = "x".repeat(LONGEST_ID);

        assert_eq!(found("7").map(|id| id.raw().to_owned()), Some("7".into()));
        assert!(found(&longest).is_some());
        assert_eq!(found(&(longest + "x")), None);
        assert_eq!(found(""), None);
    }
}
