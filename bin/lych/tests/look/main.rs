//! The read verbs as a person or a script meets them: the real program, real processes, real crashes.

#[cfg(test)]
mod scene;
#[cfg(test)]
mod verbs;
