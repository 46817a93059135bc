//! Starts the daemon where nobody listens, so that it shares nothing with whoever happened to need it first.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read, Seek, SeekFrom},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use model::{Exit, Explain, Fault, Foreign, Home, Realm, Users};
use sys::{
    clock::boot_millis,
    durable,
    socket::{self, Keeper},
    spawn::Detached,
};

/// Who needed the daemon; the log keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartedBy {
    /// An agent's client, by starting the shim.
    Agent,
    /// A person's command.
    Operator,
}

impl StartedBy {
    const fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
        }
    }
}

/// Makes sure that the daemon of this home runs and listens to operators.
///
/// # Errors
/// It cannot be started, or does not answer in time.
pub(crate) fn ensure_daemon(home: &Home, started_by: StartedBy) -> Result<(), Explain> {
    connect(home, &home.operator_socket(), started_by).map(drop)
}

/// Connects to one of the daemon's sockets, and starts the daemon if nobody listens.
///
/// Two that start it at once are no trouble: the lock decides which daemon stays, and both connect to it.
///
/// # Errors
/// The socket is not a private one of ours, or the daemon cannot be started, or does not answer in time.
pub(super) fn connect(
    home: &Home,
    path: &Path,
    started_by: StartedBy,
) -> Result<UnixStream, Explain> {
    let deadline = boot_millis().saturating_add(ANSWERS_WITHIN);
    let mut pause = SHORTEST_PAUSE;
    let mut started = false;
    loop {
        let error = match socket::connect(path, keeper(home, path)) {
            Ok(stream) => return ours(home, stream, path),
            Err(error) => error,
        };
        let nobody_listens = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
        );
        let queue_is_full = error.kind() == io::ErrorKind::WouldBlock;
        if !nobody_listens && !queue_is_full {
            return Err(unsafe_socket(home, path, &error));
        }
        if nobody_listens && !started {
            start(home, started_by)?;
            started = true;
        }
        if boot_millis() >= deadline {
            return Err(silent(home, path, &error));
        }
        thread::sleep(pause);
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
}

/// Whose the folder of a socket must be. Where the daemon is a user of its own, the agents' socket lies where
/// their group may come in.
pub(crate) fn keeper(home: &Home, path: &Path) -> Keeper {
    Keeper {
        uid: home.realm().daemon(sys::process::own_uid()),
        group: home.realm().is_separate() && path == home.agent_socket(),
    }
}

/// Sees that whoever listens is the daemon's user, who alone could have made the socket where it is.
fn ours(home: &Home, stream: UnixStream, path: &Path) -> Result<UnixStream, Explain> {
    let listener =
        sys::peer::credentials(&stream).map_err(|error| unsafe_socket(home, path, &error))?;
    if listener.uid == home.realm().daemon(sys::process::own_uid()) {
        return Ok(stream);
    }
    let why = format!("uid {} listens there", listener.uid);
    Err(unsafe_socket(home, path, &io::Error::other(why)))
}

/// Starts the daemon that lies beside this program.
///
/// Without an explicit home a service manager has the first word, as soon as one can be asked: this is the place
/// where its answer makes the detached start unnecessary.
fn start(home: &Home, started_by: StartedBy) -> Result<(), Explain> {
    if home.realm().is_separate() {
        return crate::system::start(home, started_by);
    }
    let program = daemon_beside_us()?;
    let log = home.daemon_log();
    if let Some(folder) = log.parent() {
        durable::private_folder(folder).map_err(|error| {
            Explain::new(
                Exit::Refused,
                Fault::Operator,
                "the home is not private, so no daemon is started in it",
            )
            .because(error)
            .next("make it yours alone, or name another with --home")
        })?;
    }
    let detached = Detached {
        program,
        arguments: arguments(home, started_by),
        environment: environment(std::env::vars_os(), home),
        log,
        as_user: None,
    };
    run(&detached)
}

/// Starts it.
pub(crate) fn run(detached: &Detached) -> Result<(), Explain> {
    detached.start().map_err(|error| {
        let what = format!(
            "the daemon {} cannot be started",
            detached.program.display()
        );
        Explain::new(Exit::Unreachable, Fault::Operator, what).because(error)
    })
}

pub(crate) fn daemon_beside_us() -> Result<PathBuf, Explain> {
    let own = std::env::current_exe();
    let beside = own.map(|own| own.with_file_name("lychd"));
    match beside {
        Ok(program) if program.is_file() => Ok(program),
        Ok(program) => Err(Explain::new(
            Exit::Unreachable,
            Fault::Operator,
            "there is no lychd beside this lych",
        )
        .because(format!("{} does not exist", program.display()))
        .next("install both programs in one folder")),
        Err(error) => Err(Explain::new(
            Exit::Unreachable,
            Fault::Operator,
            "this program's own file cannot be told, so neither can lychd's",
        )
        .because(error)
        .next("start the daemon by hand: lychd")),
    }
}

/// What a daemon of this home is started with.
pub(crate) fn arguments(home: &Home, started_by: StartedBy) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["--started-by".into(), started_by.word().into()];
    if let Some(root) = home.root() {
        arguments.extend(["--home".into(), root.into()]);
    }
    arguments
}

/// Keeps what tells the daemon whose it is and where its files are. A client's environment may hold anything: secrets,
/// a proxy, another set of certificates, a library to load first, a file to write TLS keys to.
fn environment(
    all: impl Iterator<Item = (OsString, OsString)>,
    home: &Home,
) -> Vec<(OsString, OsString)> {
    // A home that is named by hand is all there is to know of folders.
    let folders = if home.is_explicit() { &[][..] } else { FOLDERS };
    let kept = KEPT.iter().chain(folders);
    all.filter(|(name, _)| kept.clone().any(|kept| *name == **kept))
        .collect()
}

/// The only variables a daemon is started with.
const KEPT: &[&str] = &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "USER"];

/// Those that say where its files are.
const FOLDERS: &[&str] = &[
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

fn unsafe_socket(home: &Home, path: &Path, error: &io::Error) -> Explain {
    let whose = match home.realm() {
        Realm::SameUser => "its folder must be yours, no link, and mode 0700".to_owned(),
        Realm::SeparateUser(Users { daemon, agent }) => format!(
            "its folder must be uid {daemon}'s, no link, and mode 0750, and this must be run by uid {agent} in its \
             group"
        ),
    };
    Explain::new(
        Exit::Refused,
        Fault::Operator,
        format!("the socket {} is not to be trusted", path.display()),
    )
    .because(error)
    .next(whose)
}

fn silent(home: &Home, path: &Path, error: &io::Error) -> Explain {
    let log = home.daemon_log();
    let why = match last_line(&log) {
        Some(line) => format!("the last line of its log: {line}"),
        None => format!("{}: {error}", path.display()),
    };
    Explain::new(
        Exit::Unreachable,
        Fault::Operator,
        "the daemon was started and does not answer",
    )
    .because(why)
    .next(format!("look at {}", log.display()))
}

/// Returns the last line of a file, shown so that it cannot act on a terminal.
fn last_line(path: &Path) -> Option<Foreign> {
    let mut file = sys::regular::open(path, fs::File::options().read(true)).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))
        .ok()?;
    let mut tail = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut tail).ok()?;
    let lines = tail.split(|byte| *byte == b'\n');
    let last = lines.rev().find(|line| !line.is_empty())?;
    Some(Foreign::from_bytes(last))
}

/// How long a daemon may take from its start to its first answer, in milliseconds: it opens and repairs a log.
const ANSWERS_WITHIN: u64 = 5_000;

/// The pause before the next look grows from one to the other.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Enough of a log for its last line.
const LOG_TAIL: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_gets_no_variable_that_could_lead_it_or_its_connections_astray() {
        let given = [
            "PATH",
            "HOME",
            "LD_PRELOAD",
            "HTTPS_PROXY",
            "SSL_CERT_FILE",
            "SSLKEYLOGFILE",
            "CI_TOKEN",
            "LYCH_HOME",
            "XDG_RUNTIME_DIR",
        ];
        let given = given.map(|name| (OsString::from(name), OsString::from("x")));

        let usual = Home::from_vars(|name| (name == "HOME").then(|| "/h".into())).unwrap();
        let explicit = Home::below(Path::new("/h")).unwrap();
        for (home, expected) in [
            (usual, &["PATH", "HOME", "XDG_RUNTIME_DIR"][..]),
            (explicit, &["PATH", "HOME"]),
        ] {
            let kept = environment(given.clone().into_iter(), &home);

            let names: Vec<&str> = kept.iter().filter_map(|(name, _)| name.to_str()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn a_home_named_by_hand_is_handed_on_and_another_is_not() {
        let explicit = Home::below(Path::new("/h")).unwrap();
        let usual = Home::from_vars(|name| (name == "HOME").then(|| "/h".into())).unwrap();

        assert_eq!(
            arguments(&explicit, StartedBy::Agent),
            ["--started-by", "agent", "--home", "/h"]
        );
        assert_eq!(
            arguments(&usual, StartedBy::Operator),
            ["--started-by", "operator"]
        );
    }

    #[test]
    fn the_last_line_of_a_log_is_shown_harmlessly() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("lychd.log");

        assert_eq!(last_line(&log), None);
        fs::write(&log, format!("{}\nerror: \u{1b}[2J\n\n", "x".repeat(5000))).unwrap();
        assert_eq!(last_line(&log).unwrap().to_string(), "error: \\u{1b}[2J");
    }
}
