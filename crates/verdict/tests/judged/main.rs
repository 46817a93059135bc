//! Real processes, real crashes: each orphan beside a twin that is the same and in use.

#[cfg(test)]
mod innocents;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod orphans;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod records;
#[cfg(test)]
mod reuse;
#[cfg(test)]
mod scene;
