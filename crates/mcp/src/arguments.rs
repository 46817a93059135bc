//! The arguments of `http_request`, read strictly: a field that is not known is an error and not ignored.

use base64::{Engine, engine::general_purpose::STANDARD};
use gateway::HttpRequest;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    channel: String,
    method: String,
    path: String,
    // Null stands for a field that is not given: that is how many models write it.
    query: Option<JsonObject>,
    headers: Option<JsonObject>,
    body: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bytes {
    base64: String,
}

/// Reads the arguments of `http_request`.
///
/// # Errors
/// They are not as the schema says; the text is for the agent, which can mend them.
pub(crate) fn http_request(arguments: JsonObject) -> Result<HttpRequest, String> {
    let given: Arguments =
        serde_json::from_value(Value::Object(arguments)).map_err(|error| error.to_string())?;
    let mut headers = headers(given.headers.unwrap_or_default())?;
    let body = given.body.map(body).transpose()?;
    if let Some(Body { is_json: true, .. }) = body
        && !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE))
    {
        headers.push((CONTENT_TYPE.to_owned(), "application/json".to_owned()));
    }
    Ok(HttpRequest {
        channel: given.channel,
        method: given.method,
        path: given.path,
        query: query(given.query.unwrap_or_default())?,
        headers,
        body: body.map(|body| body.bytes),
    })
}

/// Reads the arguments of a tool that has none.
///
/// # Errors
/// There are some.
pub(crate) fn none(arguments: &JsonObject) -> Result<(), String> {
    match arguments.keys().next() {
        Some(name) => Err(format!(
            "unknown field `{name}`, this tool has no arguments"
        )),
        None => Ok(()),
    }
}

fn query(given: JsonObject) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for (name, value) in given {
        let values = match value {
            Value::Array(values) => values,
            one @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => vec![one],
        };
        for value in values {
            let value = scalar(value).ok_or_else(|| {
                format!("query parameter `{name}` is neither a string, a number nor a boolean")
            })?;
            pairs.push((name.clone(), value));
        }
    }
    Ok(pairs)
}

fn scalar(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn headers(given: JsonObject) -> Result<Vec<(String, String)>, String> {
    let field = |(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("header `{name}` is not a string"))
        }
    };
    given.into_iter().map(field).collect()
}

struct Body {
    bytes: Vec<u8>,
    is_json: bool,
}

fn body(value: Value) -> Result<Body, String> {
    if let Value::String(text) = value {
        return Ok(Body {
            bytes: text.into_bytes(),
            is_json: false,
        });
    }
    // A JSON body that is itself such an object can be sent as a string.
    if let Ok(Bytes { base64 }) = Bytes::deserialize(&value) {
        let bytes = STANDARD
            .decode(base64)
            .map_err(|error| format!("the body's base64 is wrong: {error}"))?;
        return Ok(Body {
            bytes,
            is_json: false,
        });
    }
    Ok(Body {
        bytes: value.to_string().into_bytes(),
        is_json: true,
    })
}

const CONTENT_TYPE: &str = "content-type";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extra: Value) -> Result<HttpRequest, String> {
        let mut all = json!({"channel": "builds", "method": "POST", "path": "/x"});
        let (Value::Object(all_fields), Value::Object(extra)) = (&mut all, extra) else {
            panic!("objects");
        };
        all_fields.extend(extra);
        http_request(all_fields.clone())
    }

    #[test]
    fn a_string_is_sent_as_it_is_and_a_value_as_json_with_its_type() {
        let text = read(json!({"body": "{\"a\":1}"})).unwrap();
        assert_eq!(text.body.unwrap(), b"{\"a\":1}");
        assert!(text.headers.is_empty());

        for value in [json!({"a": 1}), json!([1]), json!(7), json!(false)] {
            let sent = read(json!({"body": value})).unwrap();
            assert_eq!(sent.body.unwrap(), value.to_string().into_bytes());
            let field = ("content-type".to_owned(), "application/json".to_owned());
            assert_eq!(sent.headers, [field]);
        }
    }

    #[test]
    fn a_content_type_that_is_given_is_kept() {
        let given = json!({"body": {"a": 1}, "headers": {"Content-Type": "application/x"}});

        let sent = read(given).unwrap();

        let field = ("Content-Type".to_owned(), "application/x".to_owned());
        assert_eq!(sent.headers, [field]);
    }

    #[test]
    fn base64_is_bytes_and_wrong_base64_is_an_error() {
        let sent = read(json!({"body": {"base64": "AP8="}})).unwrap();

        assert_eq!(sent.body.unwrap(), [0, 255]);
        assert!(sent.headers.is_empty());
        assert!(read(json!({"body": {"base64": "?"}})).is_err());
        let with_more = read(json!({"body": {"base64": "AP8=", "a": 1}})).unwrap();
        assert!(with_more.body.unwrap().starts_with(b"{"), "this is JSON");
    }

    #[test]
    fn query_values_are_written_plainly_and_lists_repeat_the_name() {
        let sent = read(json!({"query": {"a": [1, "x"], "b": true}})).unwrap();

        let pairs: Vec<(&str, &str)> = sent
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("a", "1"), ("a", "x"), ("b", "true")]);
    }

    #[test]
    fn what_the_schema_does_not_know_is_an_error() {
        for wrong in [
            json!({"follow_redirects": true}),
            json!({"headers": {"a": 1}}),
            json!({"query": {"a": {}}}),
            json!({"path": 7}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(http_request(JsonObject::new()).is_err());
    }

    #[test]
    fn null_stands_for_a_field_that_is_not_given() {
        let sent = read(json!({"query": null, "headers": null, "body": null})).unwrap();

        assert_eq!((sent.query.len(), sent.headers.len()), (0, 0));
        assert_eq!(sent.body, None);
    }
}
