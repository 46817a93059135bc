//! The one binary of tests that see the house from outside: its shape, its source and its programs.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod adversary;
#[cfg(test)]
mod agent;
#[cfg(test)]
mod apart;
#[cfg(test)]
mod both_ends;
#[cfg(test)]
mod census;
#[cfg(test)]
mod construction;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod disturbed;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod drill;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod floors;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod front;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod fuzz_smoke;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod guarantees;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod log;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod official_clients;
#[cfg(test)]
mod operator;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod presence;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod python_sdk;
#[cfg(test)]
mod read_verbs;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod revoke;
#[cfg(test)]
mod separate;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod ship;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod siege;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod two_users;
#[cfg(test)]
mod vault_files;
#[cfg(test)]
mod verifiers;
