//! The repository's own commands: `cargo xtask demo`, `test`, `prove`, `bench`, `install`, `tools`.
//!
//! Plain std on purpose: this is the first thing a stranger builds, and it should take a second.

mod bench;
mod demo;
mod fuzz;
mod install;
mod options;
mod peers;
mod prove;
mod sdks;
mod shell;
mod table;
mod test;
mod tools;

use std::process::ExitCode;

use options::Options;
use shell::{Trouble, say};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo [ARGS]                      build, then run `lych drill self ARGS`: the whole story, on this machine
  test                             everything that must hold before a change lands
  prove NAME [--n N] [--seed S]    one claim, at a scale that is too slow for every day; alone: the names
  bench NAME                       one measurement; alone: the names
  install [--to DIR]               build for release and copy lych and lychd (default: ~/.local/bin)
  tools                            install what the tests need below target/, by name and version";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let result = match command.as_deref() {
        Some("demo") => demo::run(args.collect()),
        Some("test") => Options::none(args).and_then(|()| test::run()),
        Some("prove") => Options::parse(args, &["--n", "--seed"]).and_then(|o| prove::run(&o)),
        Some("bench") => Options::parse(args, &[]).and_then(|o| bench::run(&o)),
        Some("install") => Options::parse(args, &["--to"]).and_then(|o| install::run(&o)),
        Some("tools") => Options::none(args).and_then(|()| tools::run()),
        Some("help" | "--help" | "-h") => {
            say(USAGE);
            Ok(())
        }
        Some(_) | None => Err(Trouble::Usage(USAGE.to_owned())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            shell::complain(&trouble.to_string());
            ExitCode::from(trouble.code())
        }
    }
}
