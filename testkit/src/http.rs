//! As much HTTP/1.1 as a counting target needs (RFC 9112): one request in, one reply out.

use std::{
    io::{self, BufRead, Read, Write},
    time::Instant,
};

use model::Wall;

/// One request as the target received it.
#[derive(Debug, Clone)]
pub struct Request {
    /// When its last byte was read, on the wall clock.
    pub at: Wall,
    /// The same moment for computing with.
    pub instant: Instant,
    /// Its place among all requests of this target, counted from 1.
    pub number: usize,
    /// The method.
    pub method: String,
    /// The path, query included.
    pub path: String,
    /// The header fields in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the first header field of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the id that makes a repeat of this request harmless, if it carries one.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.header("idempotency-key")
    }

    /// Reads the next request of a connection; none at its end.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(first) = line(from)? else {
            return Ok(None);
        };
        let mut parts = first.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (parts.next(), parts.next()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let headers = headers(from)?;
        let mut request = Self {
            at: Wall::from_millis(0),
            instant: Instant::now(),
            number: 0,
            method,
            path,
            headers,
            body: Vec::new(),
        };
        request.body = body(from, &request)?;
        request.at = Wall::from(std::time::SystemTime::now());
        request.instant = Instant::now();
        Ok(Some(request))
    }
}

/// What the target answers.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Header fields beside the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns a reply of this status with a JSON text.
    #[must_use]
    pub fn json(status: u16, text: impl Into<String>) -> Self {
        Self::bytes(status, text.into())
    }

    /// Returns a reply that says it is JSON, whatever its body is.
    #[must_use]
    pub fn bytes(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.into(),
        }
    }

    /// Adds a header field.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = format!("HTTP/1.1 {} Reply\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        to.write_all(&bytes)
    }
}

/// Far more than any test sends, and a stop for one that never ends its line.
const LONGEST_LINE: u64 = 64 * 1024;

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text = String::new();
    let read = from.take(LONGEST_LINE).read_line(&mut text)?;
    if read == 0 {
        return Ok(None);
    }
    if !text.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(text.trim_end().to_owned()))
}

fn headers(from: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    loop {
        let text = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if text.is_empty() {
            return Ok(all);
        }
        let (name, value) = text.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
        all.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn body(from: &mut impl BufRead, request: &Request) -> io::Result<Vec<u8>> {
    if request.header("transfer-encoding") == Some("chunked") {
        return chunks(from);
    }
    let length = request.header("content-length").unwrap_or("0");
    let length = length
        .parse()
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    exactly(from, length)
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let size = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = u64::from_str_radix(size.trim(), 16)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        all.extend(exactly(from, size)?);
        // The line end behind a chunk, or the empty trailer behind the last one.
        line(from)?;
        if size == 0 {
            return Ok(all);
        }
    }
}

fn exactly(from: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(length).read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read == length) {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
