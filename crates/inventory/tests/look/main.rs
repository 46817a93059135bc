//! The look at real machines and at recorded ones.

#[cfg(test)]
mod live;
#[cfg(test)]
mod recorded;
