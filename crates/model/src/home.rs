//! Every path the product owns, in one place.

use std::path::{Path, PathBuf};

/// The folders of one installation.
///
/// Without `--home` they follow the XDG base directory specification under the name `lychgate`; with it
/// (or with `LYCH_HOME`) all of them lie below one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    run: PathBuf,
    explicit: bool,
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
            explicit: true,
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
        Ok(Self {
            config: under("XDG_CONFIG_HOME", ".config")?,
            data: under("XDG_DATA_HOME", ".local/share")?,
            run: absolute("XDG_RUNTIME_DIR")
                .map_or_else(|| state.join("run"), |run| run.join("lychgate")),
            state,
            explicit: false,
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

    /// The folders that must exist, be ours and have mode 0700.
    #[must_use]
    pub fn folders(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = vec![&self.config, &self.data, &self.state, &self.run];
        all.dedup();
        all
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
        self.state.join("bootstrap.key")
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

    /// The folder of incidents.
    #[must_use]
    pub fn incidents(&self) -> PathBuf {
        self.state.join("incidents")
    }

    /// The folder of the two sockets.
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
        self.run.join("operator.sock")
    }

    /// The daemon's own log; never a target, an argument or a secret in it.
    #[must_use]
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("lychd.log")
    }

    /// The folder below which everything lies, if it was named by hand.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        self.explicit.then_some(self.state.as_path())
    }
}
