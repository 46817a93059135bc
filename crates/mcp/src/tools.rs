//! The tools as an agent reads them: names, schemas, descriptions, always in the same order.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// What may be used.
pub(crate) const CHANNELS: &str = "channels";
/// One HTTP action.
pub(crate) const HTTP_REQUEST: &str = "http_request";

/// Told to the agent's model once, at the start.
pub(crate) const INSTRUCTIONS: &str = "\
Lychgate performs HTTP requests to outside systems for you and keeps the credentials to itself. \
Call `channels` first to see which systems, methods and paths are open, then `http_request`. \
Never send a credential of your own: Lychgate adds the right one. \
A result with `refused` was not sent; follow its `what_to_do` instead of trying again. \
A result with `unresolved` may have taken effect: do not repeat it, tell the person you work for.";

/// Returns all tools.
pub(crate) fn all() -> Vec<Tool> {
    vec![channels(), http_request()]
}

fn channels() -> Tool {
    let text = "Lists the outside systems you can reach through Lychgate: for each channel its name, where it \
                leads, and which methods and paths are allowed (`*` stands for one path segment, `**` for any \
                rest). A channel that is closed at the moment says why.";
    let schema = object(json!({
        "type": "object",
        "properties": {},
        "additionalProperties": false
    }));
    let hints = ToolAnnotations::with_title("List channels")
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    Tool::new(CHANNELS, text, schema).with_annotations(hints)
}

fn http_request() -> Tool {
    let text = "Sends one HTTP request through a channel and returns the answer's status, headers and body. The \
                channel's credential is added for you and its headers cannot be set. Redirects are not \
                followed and nothing is retried. If the result says `refused`, nothing was sent; if it \
                says `unresolved`, the request may have taken effect and must not be repeated.";
    let hints = ToolAnnotations::with_title("Send an HTTP request")
        .read_only(false)
        .destructive(true)
        .idempotent(false)
        .open_world(true);
    Tool::new(HTTP_REQUEST, text, http_request_schema()).with_annotations(hints)
}

fn http_request_schema() -> Arc<JsonObject> {
    let scalar = json!(["string", "number", "boolean"]);
    object(json!({
        "type": "object",
        "properties": {
            "channel": {
                "type": "string",
                "description": "Name of a channel, as `channels` lists it."
            },
            "method": {
                "type": "string",
                "description": "HTTP method, such as GET or POST."
            },
            "path": {
                "type": "string",
                "description": "Path below the channel's base, such as /builds/7. No host and no query."
            },
            "query": {
                "type": "object",
                "description": "Query parameters; a list repeats its name.",
                "additionalProperties": {
                    "anyOf": [
                        { "type": scalar },
                        { "type": "array", "items": { "type": scalar } }
                    ]
                }
            },
            "headers": {
                "type": "object",
                "description": "Header fields. Never a credential.",
                "additionalProperties": { "type": "string" }
            },
            "body": {
                "description": "A string is sent as it is; {\"base64\": \"…\"} as the bytes it encodes; any other \
                                JSON value as JSON, with a content-type to match unless you give one."
            }
        },
        "required": ["channel", "method", "path"],
        "additionalProperties": false
    }))
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(schema) => Arc::new(schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Arc::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_come_in_one_order_and_take_nothing_that_they_do_not_name() {
        let names: Vec<String> = all().iter().map(|tool| tool.name.to_string()).collect();

        assert_eq!(names, [CHANNELS, HTTP_REQUEST]);
        for tool in all() {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false);
            assert!(tool.annotations.is_some() && tool.description.is_some());
        }
    }
}
