//! A method and a pattern of paths, as the policy lists them: `POST /forceschedulers/*`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::path::{self, CleanPath};

/// One line of an operation's list: a method, and the paths it is allowed for.
///
/// `*` is one segment and never an empty one; `**` at the end is everything behind its slash, also nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Allow {
    method: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal { decoded: String, text: String },
    One,
    Rest,
}

/// A method and a path with `{id}` in it, by which a job is looked up or cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobPath {
    method: String,
    path: String,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It is not a method, a space and a path.
    #[error("a method, one space and a path are expected, as in \"POST /builds/*\"")]
    Form,
    /// The method is none of those that channels use.
    #[error("the method {0:?} is not one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE")]
    Method(String),
    /// A star stands where it cannot.
    #[error("a '*' stands for a whole segment, and '**' only at the end")]
    Star,
    /// A job's path without `{id}`.
    #[error("the path has no \"{{id}}\" as one of its segments")]
    NoId,
    /// The path has more than one reading.
    #[error("{0}")]
    Path(String),
}

impl Allow {
    /// Tells whether this line allows the method and path.
    pub(crate) fn matches(&self, method: &str, path: &CleanPath) -> bool {
        if self.method != method {
            return false;
        }
        let mut given = path.segments.iter();
        for wanted in &self.segments {
            let ok = match (wanted, given.next()) {
                (Segment::Rest, Some(_)) => return true,
                (Segment::Literal { decoded, .. }, Some(segment)) => decoded == segment,
                (Segment::One, Some(segment)) => !segment.is_empty(),
                (Segment::Rest | Segment::Literal { .. } | Segment::One, None) => false,
            };
            if !ok {
                return false;
            }
        }
        given.next().is_none()
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.method)?;
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Literal { text, .. } => write!(f, "/{text}"),
            Segment::One => f.write_str("/*"),
            Segment::Rest => f.write_str("/**"),
        })
    }
}

impl FromStr for Allow {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (method, path) = method_and_path(text)?;
        let below = path.strip_prefix('/').ok_or(PatternError::Form)?;
        let parts: Vec<&str> = below.split('/').collect();
        let mut segments = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            segments.push(match *part {
                "*" => Segment::One,
                "**" if last => Segment::Rest,
                other if other.contains('*') => return Err(PatternError::Star),
                other => literal(other, last)?,
            });
        }
        let method = method.to_owned();
        Ok(Self { method, segments })
    }
}

impl fmt::Display for JobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl FromStr for JobPath {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (method, path) = method_and_path(text)?;
        if path.split('/').filter(|segment| *segment == "{id}").count() != 1 {
            return Err(PatternError::NoId);
        }
        read_path(&path.replace("{id}", "id"))?;
        Ok(Self {
            method: method.to_owned(),
            path: path.to_owned(),
        })
    }
}

macro_rules! text_form {
    ($($name:ident)*) => {$(
        impl TryFrom<String> for $name {
            type Error = PatternError;

            fn try_from(text: String) -> Result<Self, PatternError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(pattern: $name) -> Self {
                pattern.to_string()
            }
        }
    )*};
}

text_form!(Allow JobPath);

fn method_and_path(text: &str) -> Result<(&str, &str), PatternError> {
    let (method, path) = text.split_once(' ').ok_or(PatternError::Form)?;
    if METHODS.contains(&method) {
        Ok((method, path))
    } else {
        Err(PatternError::Method(method.to_owned()))
    }
}

fn literal(part: &str, last: bool) -> Result<Segment, PatternError> {
    // An empty segment is a slash at the end; read as one, it would be the path "/".
    if part.is_empty() && last {
        let (decoded, text) = (String::new(), String::new());
        return Ok(Segment::Literal { decoded, text });
    }
    let clean = read_path(&format!("/{part}"))?;
    let decoded = clean.segments.into_iter().next().unwrap_or_default();
    let text = clean.text.trim_start_matches('/').to_owned();
    if decoded.is_empty() {
        return Err(PatternError::Path(
            path::PathFault::EmptySegment.to_string(),
        ));
    }
    Ok(Segment::Literal { decoded, text })
}

fn read_path(text: &str) -> Result<CleanPath, PatternError> {
    path::read(text).map_err(|fault| PatternError::Path(fault.to_string()))
}

/// CONNECT and TRACE are no requests to a resource; others are not in use by the APIs this is for.
const METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, method: &str, path: &str) -> bool {
        let allow: Allow = pattern.parse().unwrap();
        allow.matches(method, &path::read(path).unwrap())
    }

    #[test]
    fn a_pattern_matches_whole_segments() {
        for (pattern, path, expected) in [
            ("GET /builds", "/builds", true),
            ("GET /builds", "/builds/", false),
            ("GET /builds", "/builds2", false),
            ("GET /builds", "/Builds", false),
            ("GET /builds/", "/builds/", true),
            ("GET /builds/*", "/builds/1", true),
            ("GET /builds/*", "/builds/", false),
            ("GET /builds/*", "/builds", false),
            ("GET /builds/*", "/builds/1/", false),
            ("GET /builds/*", "/builds/1/x", false),
            ("GET /*/x", "/a/x", true),
            ("GET /*/x", "/a/b/x", false),
            ("GET /builds/**", "/builds/", true),
            ("GET /builds/**", "/builds/1/x/", true),
            ("GET /builds/**", "/builds", false),
            ("GET /**", "/", true),
            ("GET /", "/", true),
            ("GET /", "/a", false),
            ("GET /a!b", "/a%21b", true),
        ] {
            assert_eq!(allows(pattern, "GET", path), expected, "{pattern} {path}");
        }
        assert!(!allows("GET /builds", "POST", "/builds"));
        assert!(!allows("GET /builds", "get", "/builds"));
    }

    #[test]
    fn a_text_that_is_no_pattern_is_refused() {
        for bad in [
            "",
            "GET",
            "/x",
            "GET  /x",
            "GET x",
            "get /x",
            "CONNECT /x",
            "* /x",
            "GET /a*",
            "GET /**/a",
            "GET /../a",
            "GET /a//b",
            "GET /a?b",
            "GET /a%2fb",
            "GET /***",
        ] {
            assert!(bad.parse::<Allow>().is_err(), "{bad:?}");
        }
        for bad in [
            "GET /builds",
            "GET /x{id}",
            "GET /{id}/{id}",
            "GET /../{id}",
            "{id}",
        ] {
            assert!(bad.parse::<JobPath>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_pattern_is_read_back_from_its_text() {
        for text in [
            "POST /forceschedulers/*",
            "GET /**",
            "GET /",
            "GET /a%20b/*/",
            "GET /builds/",
        ] {
            assert_eq!(text.parse::<Allow>().unwrap().to_string(), text);
        }
        let job: JobPath = "POST /builds/{id}".parse().unwrap();
        assert_eq!(job.to_string(), "POST /builds/{id}");
    }
}
