//! The server behind every peer: one tool that says back what it is told, over lines or over HTTP.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use serde_json::{Value, json};

/// Serves lines on standard input until it ends.
pub fn over_lines() {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if let Some(answer) = answer(&message) {
            // Whoever has hung up reads nothing any more, and the input ends next.
            drop(writeln!(out, "{answer}").and_then(|()| out.flush()));
        }
    }
}

/// Serves streamable HTTP with plain JSON replies on loopback, for as long as the process lives.
pub fn over_http() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    let address = listener.local_addr().expect("a bound socket");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn serve(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut out = stream.try_clone().ok()?;
    let mut from = BufReader::new(stream);
    loop {
        let (method, body) = request(&mut from)?;
        let said = serde_json::from_slice::<Value>(&body).ok();
        let reply = match (method.as_str(), said.as_ref().and_then(answer)) {
            ("POST", Some(answer)) => {
                let text = answer.to_string();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: bench\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                )
            }
            ("POST", None) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
            // No stream of the server's own messages: clients take this for an answer.
            ("GET", _) => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
            (_, _) => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        out.write_all(reply.as_bytes()).ok()?;
    }
}

fn request(from: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut first = String::new();
    from.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    let method = first.split(' ').next()?.to_owned();
    Some((method, body))
}

fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| !id.is_null())?;
    let method = message.get("method").and_then(Value::as_str)?;
    let params = message.get("params").unwrap_or(&Value::Null);
    let result = match method {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "echo",
            "description": "says back what it is told",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        }]}),
        "tools/call" => json!({
            "content": [{"type": "text", "text": params["arguments"]["text"]}],
            "isError": false,
        }),
        "ping" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}
