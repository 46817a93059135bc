//! `cargo xtask install`: both programs, built for release, in a folder of the person's choice.

use std::{env, fs, io, path::Path, path::PathBuf};

use crate::{
    options::Options,
    shell::{Trouble, cargo, run as show, say, target},
};

const PROGRAMS: &[&str] = &["lych", "lychd"];

/// Builds, copies, and says what it did.
pub(crate) fn run(options: &Options) -> Result<(), Trouble> {
    if let Some(word) = options.words.first() {
        return Err(Trouble::Usage(format!("{word} is one argument too many")));
    }
    let folder = folder(options)?;
    show(cargo(&[
        "build",
        "--release",
        "--locked",
        "-p",
        "lych",
        "-p",
        "lychd",
    ]))?;
    fs::create_dir_all(&folder).map_err(|error| refused(&folder, &error))?;
    for name in PROGRAMS {
        let to = folder.join(name);
        put(&target().join("release").join(name), &to).map_err(|error| refused(&to, &error))?;
        say(&format!("installed {}", to.display()));
    }
    if !on_path(&folder) {
        say(&format!("{} is not on your PATH yet", folder.display()));
    }
    say("a daemon that is running keeps running its old program: `lych down`, then use it again");
    Ok(())
}

fn folder(options: &Options) -> Result<PathBuf, Trouble> {
    if let Some(to) = options.value("--to") {
        return std::path::absolute(to).map_err(|error| refused(Path::new(to), &error));
    }
    env::var_os("HOME")
        .map(|home| PathBuf::from(home).join(".local/bin"))
        .ok_or_else(|| Trouble::Usage("HOME is not set: say --to DIR".to_owned()))
}

/// Copies beside the place and renames: a program that runs cannot be written to (ETXTBSY, open(2)).
fn put(from: &Path, to: &Path) -> io::Result<()> {
    let beside = to.with_added_extension("new");
    fs::copy(from, &beside)?;
    fs::rename(&beside, to)
}

fn on_path(folder: &Path) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|entry| entry == folder))
}

fn refused(path: &Path, error: &io::Error) -> Trouble {
    Trouble::Program(format!("cannot write {}: {error}", path.display()))
}
