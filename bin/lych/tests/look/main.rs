//! The read verbs as a person or a script meets them: the real program, real processes, real crashes.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod innocents;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod verbs;
