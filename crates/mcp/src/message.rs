//! One line from an agent, taken apart: a request to hand on, a cancel to note, or a fault to answer.
//!
//! JSON-RPC 2.0 as MCP narrows it: no batches, no null ids. Done before `rmcp` sees the line, because that
//! drops what it cannot read without an answer, and reads a request with an unusable id as a notification.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage, RequestId,
};
use serde_json::Value;

/// What a line holds.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A request.
    Request(Box<Request>),
    /// The agent does not want the answer of this request any more.
    Cancel(RequestId),
    /// A notification that changes nothing here, or an answer to a question that we never ask.
    Nothing,
}

/// A request, with what decides whether it may enter.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) kind: RequestKind,
    pub(crate) message: ClientJsonRpcMessage,
}

/// What matters about a request before it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Opens the legacy era.
    Initialize,
    /// Names its protocol version itself: the modern era needs no opening.
    Modern,
    /// Answered in any state: `ping`, and `server/discover`, which checks its own form.
    Free,
    /// Belongs to the legacy era.
    Legacy,
}

impl Request {
    /// Tells whether it calls a tool, so that a refusal has to be a tool's result.
    pub(crate) fn is_tool_call(&self) -> bool {
        let JsonRpcMessage::Request(request) = &self.message else {
            return false;
        };
        matches!(request.request, ClientRequest::CallToolRequest(_))
    }
}

/// What is wrong with a line, as JSON-RPC says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFault {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
    /// The request's id, where it could be read.
    pub(crate) id: Option<RequestId>,
}

impl LineFault {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>, id: Option<RequestId>) -> Self {
        let text = text.into();
        Self { code, text, id }
    }
}

/// Takes one line apart.
pub(crate) fn read(line: &[u8]) -> Result<Incoming, LineFault> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let text = format!("a line is not JSON: {}", without_content(&error));
        LineFault::new(ErrorCode::PARSE_ERROR, text, None)
    })?;
    let invalid = |text: &str| LineFault::new(ErrorCode::INVALID_REQUEST, text, None);
    let object = value
        .as_object()
        .ok_or_else(|| invalid("a message is one JSON object; batches are not supported"))?;
    let id = match object.get("id") {
        None => None,
        Some(id) => {
            let id = serde_json::from_value(id.clone());
            Some(id.map_err(|_| invalid("an id is a string or an integer"))?)
        }
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(LineFault::new(
            ErrorCode::INVALID_REQUEST,
            "a message has \"jsonrpc\": \"2.0\"",
            id,
        ));
    }
    match (object.get("method").and_then(Value::as_str), id) {
        (Some(_), Some(id)) => request(value, id),
        (Some("notifications/cancelled"), None) => Ok(cancelled(&value)),
        (Some(_), None) => Ok(Incoming::Nothing),
        (None, _) if object.contains_key("result") || object.contains_key("error") => {
            Ok(Incoming::Nothing)
        }
        (None, id) => {
            let text = "a message has a method, a result or an error";
            Err(LineFault::new(ErrorCode::INVALID_REQUEST, text, id))
        }
    }
}

fn request(value: Value, id: RequestId) -> Result<Incoming, LineFault> {
    let message = match serde_json::from_value(value) {
        Ok(message @ JsonRpcMessage::Request(_)) => message,
        Ok(
            JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Error(_),
        )
        | Err(_) => {
            let text = "the request does not have the form of its method";
            return Err(LineFault::new(ErrorCode::INVALID_PARAMS, text, Some(id)));
        }
    };
    let kind = kind_of(&message);
    Ok(Incoming::Request(Box::new(Request { id, kind, message })))
}

fn kind_of(message: &ClientJsonRpcMessage) -> RequestKind {
    let JsonRpcMessage::Request(request) = message else {
        return RequestKind::Free;
    };
    let request = &request.request;
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        RequestKind::Initialize
    } else if matches!(
        request,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)
    ) {
        RequestKind::Free
    } else if request.get_meta().protocol_version().is_some() {
        RequestKind::Modern
    } else {
        RequestKind::Legacy
    }
}

fn cancelled(value: &Value) -> Incoming {
    let id = value.pointer("/params/requestId").cloned();
    match id.map(serde_json::from_value) {
        Some(Ok(id)) => Incoming::Cancel(id),
        // The protocol has no answer to a notification, a wrong one included.
        Some(Err(_)) | None => Incoming::Nothing,
    }
}

/// Says what is wrong and where, without the text that is wrong.
fn without_content(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Syntax
        | serde_json::error::Category::Data
        | serde_json::error::Category::Io => "wrong syntax",
    };
    format!("{what} at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> (i32, Option<RequestId>) {
        let fault = read(line.as_bytes()).unwrap_err();
        (fault.code.0, fault.id)
    }

    fn kind(line: &str) -> RequestKind {
        let Ok(Incoming::Request(request)) = read(line.as_bytes()) else {
            panic!("a request: {line}");
        };
        request.kind
    }

    #[test]
    fn a_line_that_is_no_message_is_a_fault_with_the_id_it_named() {
        let seven = || Some(RequestId::Number(7));

        assert_eq!(fault("{"), (-32700, None));
        assert_eq!(fault("\u{feff}{}"), (-32700, None));
        assert_eq!(fault("[]"), (-32600, None));
        assert_eq!(fault(r#"{"id":7,"method":"ping"}"#), (-32600, seven()));
        assert_eq!(fault(r#"{"jsonrpc":"2.0","id":7}"#), (-32600, seven()));
        for id in ["null", "1.5", "true", "{}"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(fault(&line), (-32600, None), "{id}");
        }
    }

    #[test]
    fn a_parse_error_repeats_nothing_of_the_line() {
        let fault = read(br#"{"password":hunter2}"#).unwrap_err();

        assert!(!fault.text.contains("hunter2"), "{}", fault.text);
    }

    #[test]
    fn the_era_of_a_request_is_in_the_request() {
        let modern = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

        assert_eq!(kind(modern), RequestKind::Modern);
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
            RequestKind::Legacy
        );
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}"#),
            RequestKind::Legacy
        );
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            RequestKind::Free
        );
    }

    #[test]
    fn a_cancel_is_noted_and_other_notifications_change_nothing() {
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;

        assert!(matches!(
            read(cancel.as_bytes()),
            Ok(Incoming::Cancel(RequestId::String(_)))
        ));
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            assert!(
                matches!(read(line.as_bytes()), Ok(Incoming::Nothing)),
                "{line}"
            );
        }
    }
}
