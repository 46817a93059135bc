//! The look at real machines and at recorded ones.

#[cfg(test)]
mod live;
#[cfg(test)]
mod portable;
#[cfg(test)]
mod recorded;
