//! A command's own arguments: `--name value` pairs and plain words.

use crate::shell::Trouble;

/// What stood on the command line behind the command.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// The plain words, in their order.
    pub(crate) words: Vec<String>,
    pairs: Vec<(String, String)>,
}

impl Options {
    /// Sorts the arguments; only the names in `known` may carry a value.
    pub(crate) fn parse(
        mut args: impl Iterator<Item = String>,
        known: &[&str],
    ) -> Result<Self, Trouble> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            if !arg.starts_with("--") {
                options.words.push(arg);
            } else if known.contains(&arg.as_str()) {
                let value = args
                    .next()
                    .ok_or_else(|| Trouble::Usage(format!("{arg} needs a value")))?;
                options.pairs.push((arg, value));
            } else {
                return Err(Trouble::Usage(format!("there is no option {arg} here")));
            }
        }
        Ok(options)
    }

    /// Accepts no argument at all.
    pub(crate) fn none(mut args: impl Iterator<Item = String>) -> Result<(), Trouble> {
        match args.next() {
            None => Ok(()),
            Some(arg) => Err(Trouble::Usage(format!("{arg} is one argument too many"))),
        }
    }

    /// Returns the value of an option, the last one if it was given twice.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the value of an option as a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Trouble> {
        self.value(name)
            .map(|text| {
                text.parse()
                    .map_err(|_| Trouble::Usage(format!("{name} needs a number, not {text}")))
            })
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, Trouble> {
        Options::parse(args.iter().map(|arg| (*arg).to_owned()), &["--n"])
    }

    #[test]
    fn a_value_belongs_to_the_name_before_it() {
        let options = parse(&["crash", "--n", "7"]).unwrap();

        assert_eq!(options.words, ["crash"]);
        assert_eq!(options.number("--n").unwrap(), Some(7));
    }

    #[test]
    fn a_missing_value_an_unknown_name_and_a_word_for_a_number_are_refused() {
        assert!(parse(&["--n"]).is_err());
        assert!(parse(&["--m", "1"]).is_err());
        assert!(parse(&["--n", "many"]).unwrap().number("--n").is_err());
    }
}
