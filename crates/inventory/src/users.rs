//! Names of users, from passwd(5) alone: asking a name service could hang on a dead network.

use std::collections::HashMap;

use model::Foreign;

/// The names of the local users.
#[derive(Debug, Default)]
pub(crate) struct Users(HashMap<u32, Foreign>);

impl Users {
    /// Parses passwd(5); lines that are none are skipped.
    pub(crate) fn parse(passwd: &str) -> Self {
        let entry = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let uid = fields.nth(1)?.parse().ok()?;
            Some((uid, Foreign::from(name)))
        };
        let mut names = HashMap::new();
        for (uid, name) in passwd.lines().filter_map(entry) {
            // The first of several names of one user counts (getpwuid(3)).
            names.entry(uid).or_insert(name);
        }
        Self(names)
    }

    /// Returns a user's name, or its number where it has none.
    pub(crate) fn name(&self, uid: u32) -> Foreign {
        let number = || Foreign::new(uid.to_string());
        self.0.get(&uid).cloned().unwrap_or_else(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_an_entry_keeps_its_number() {
        let users = Users::parse("root:x:0:0::/root:/bin/sh\nbroken\ntoor:x:0:0::/:\n");

        assert_eq!(users.name(0).raw(), "root");
        assert_eq!(users.name(1000).raw(), "1000");
    }
}
