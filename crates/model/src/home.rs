//! Every path the product owns, in one place.

use std::path::{Path, PathBuf};

/// The folders of one installation.
///
/// Without `--home` they follow the XDG base directory specification under the name `lychgate`; with it
/// (or with `LYCH_HOME`) all of them lie below one folder. Where the daemon is a user of its own, that folder
/// is root's, and says so: then `private/` is the daemon's alone, and what a caller keeps for himself
/// (incidents, what he knows of the log) lies in his own home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    run: PathBuf,
    /// Where the operator's socket and the daemon's notes lie: out of the agents' reach if they can be.
    inner: PathBuf,
    /// What the caller keeps.
    own: PathBuf,
    explicit: bool,
    realm: Realm,
}

/// Under which users a home's daemon and its agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Realm {
    /// All of it is one user's. That keeps mistakes out, and no hostile program of that user.
    SameUser,
    /// The daemon is a user of its own.
    SeparateUser(Users),
}

/// The two users of a home whose daemon is a user of its own; nobody else is let in, but root as operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Users {
    /// Whose the daemon is.
    pub daemon: u32,
    /// Whose the agents are.
    pub agent: u32,
}

impl Realm {
    /// Returns whose the daemon is, as seen by the user `own`.
    #[must_use]
    pub const fn daemon(self, own: u32) -> u32 {
        match self {
            Self::SameUser => own,
            Self::SeparateUser(users) => users.daemon,
        }
    }

    /// Returns whose agents are let in, as seen by the daemon's user `own`.
    #[must_use]
    pub const fn agent(self, own: u32) -> u32 {
        match self {
            Self::SameUser => own,
            Self::SeparateUser(users) => users.agent,
        }
    }

    /// Tells whether the daemon is a user of its own.
    #[must_use]
    pub const fn is_separate(self) -> bool {
        matches!(self, Self::SeparateUser(_))
    }

    /// Returns the word that JSON has for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SameUser => "same_user",
            Self::SeparateUser(_) => "separate_user",
        }
    }
}

/// There is no place to put the home: neither `HOME` nor an explicit folder is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// No variable names a home folder.
    #[error("neither HOME nor --home says where Lychgate keeps its files")]
    Nowhere,
    /// A home folder must be absolute, or the daemon and its clients would mean different ones.
    #[error("the home folder {0} is not an absolute path")]
    Relative(PathBuf),
}

impl Home {
    /// Returns the home below one folder.
    ///
    /// # Errors
    /// The folder is not an absolute path: make it one.
    pub fn below(folder: &Path) -> Result<Self, HomeError> {
        if !folder.is_absolute() {
            return Err(HomeError::Relative(folder.to_owned()));
        }
        Ok(Self {
            config: folder.to_owned(),
            data: folder.to_owned(),
            state: folder.to_owned(),
            run: folder.join("run"),
            inner: folder.join("run"),
            own: folder.to_owned(),
            explicit: true,
            realm: Realm::SameUser,
        })
    }

    /// Returns the home below one folder of root's, whose daemon is a user of its own; `own` is where the
    /// caller keeps what is his.
    ///
    /// # Errors
    /// A folder is not an absolute path.
    pub fn separate(folder: &Path, users: Users, own: PathBuf) -> Result<Self, HomeError> {
        if !own.is_absolute() {
            return Err(HomeError::Relative(own));
        }
        let private = folder.join("private");
        Ok(Self {
            data: private.clone(),
            inner: private,
            own,
            realm: Realm::SeparateUser(users),
            ..Self::below(folder)?
        })
    }

    /// Returns the home that these variables name; `var` looks one up.
    ///
    /// # Errors
    /// There is no `HOME`, or a folder is not absolute.
    pub fn from_vars(var: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, HomeError> {
        if let Some(folder) = var("LYCH_HOME").filter(|path| !path.as_os_str().is_empty()) {
            return Self::below(&folder);
        }
        // The XDG specification says that a relative path is to be ignored.
        let absolute = |name: &str| var(name).filter(|path| path.is_absolute());
        let under = |name: &str, default: &str| {
            absolute(name)
                .or_else(|| absolute("HOME").map(|home| home.join(default)))
                .map(|base| base.join("lychgate"))
                .ok_or(HomeError::Nowhere)
        };
        let state = under("XDG_STATE_HOME", ".local/state")?;
        let run = absolute("XDG_RUNTIME_DIR")
            .map_or_else(|| state.join("run"), |run| run.join("lychgate"));
        Ok(Self {
            config: under("XDG_CONFIG_HOME", ".config")?,
            data: under("XDG_DATA_HOME", ".local/share")?,
            inner: run.clone(),
            run,
            own: state.clone(),
            state,
            explicit: false,
            realm: Realm::SameUser,
        })
    }

    /// Tells whether the home was named by hand; such a one never involves a service manager.
    #[must_use]
    pub const fn is_explicit(&self) -> bool {
        self.explicit
    }

    /// Returns the words that name this home to a command: nothing for the usual one.
    #[must_use]
    pub fn option(&self) -> String {
        if self.explicit {
            format!(" --home '{}'", self.config.display())
        } else {
            String::new()
        }
    }

    /// Returns under which users it runs.
    #[must_use]
    pub const fn realm(&self) -> Realm {
        self.realm
    }

    /// The folders that must exist, be the daemon's and have mode 0700.
    #[must_use]
    pub fn private_folders(&self) -> Vec<PathBuf> {
        match self.realm {
            Realm::SeparateUser(_) => vec![self.inner.clone()],
            Realm::SameUser => {
                let mut all = vec![
                    self.config.clone(),
                    self.data.clone(),
                    self.state.clone(),
                    self.run.clone(),
                    self.launches(),
                    self.incidents(),
                ];
                all.dedup();
                all
            }
        }
    }

    /// The folders that must exist and be the daemon's, and that the agents' group may look into.
    #[must_use]
    pub fn shared_folders(&self) -> Vec<PathBuf> {
        match self.realm {
            Realm::SameUser => Vec::new(),
            Realm::SeparateUser(_) => vec![self.run.clone(), self.launches(), self.audit()],
        }
    }

    /// The draft of the configuration.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The log's folder.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }

    /// The root key and log key of a log that no vault has taken over yet.
    #[must_use]
    pub fn bootstrap_key(&self) -> PathBuf {
        match self.realm {
            Realm::SameUser => self.state.join("bootstrap.key"),
            Realm::SeparateUser(_) => self.inner.join("bootstrap.key"),
        }
    }

    /// The vault's sealed content.
    #[must_use]
    pub fn vault(&self) -> PathBuf {
        self.data.join("vault.age")
    }

    /// The vault's main identity, under its passphrase or key file.
    #[must_use]
    pub fn identity(&self) -> PathBuf {
        self.data.join("identity.age")
    }

    /// The vault's main identity once more, under the key that this machine gives its service.
    #[must_use]
    pub fn machine_identity(&self) -> PathBuf {
        self.data.join("machine.age")
    }

    /// The folder of launch records.
    #[must_use]
    pub fn launches(&self) -> PathBuf {
        self.state.join("launches")
    }

    /// Where the caller keeps what is his.
    #[must_use]
    pub fn own_folder(&self) -> &Path {
        &self.own
    }

    /// The caller's folder of incidents.
    #[must_use]
    pub fn incidents(&self) -> PathBuf {
        self.own.join("incidents")
    }

    /// What the caller knows of the log besides the log: a file beside it, or among what is his own.
    #[must_use]
    pub fn known(&self, what: &str) -> PathBuf {
        self.own.join("audit").with_added_extension(what)
    }

    /// The lock of the one daemon.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.inner.join("lychd.lock")
    }

    /// The folder of the agents' socket.
    #[must_use]
    pub fn run_folder(&self) -> &Path {
        &self.run
    }

    /// The socket for agents.
    #[must_use]
    pub fn agent_socket(&self) -> PathBuf {
        self.run.join("agent.sock")
    }

    /// The socket for operators.
    #[must_use]
    pub fn operator_socket(&self) -> PathBuf {
        self.inner.join("operator.sock")
    }

    /// The daemon's own log; never a target, an argument or a secret in it.
    #[must_use]
    pub fn daemon_log(&self) -> PathBuf {
        match self.realm {
            Realm::SameUser => self.state.join("lychd.log"),
            Realm::SeparateUser(_) => self.inner.join("lychd.log"),
        }
    }

    /// The folder below which everything lies, if it was named by hand.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        self.explicit.then_some(self.state.as_path())
    }
}
