//! Real processes, real crashes: each orphan beside a twin that is the same and in use. And looks of values only,
//! for what real processes would have to be waited for.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod helpers;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod innocents;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod named;
#[cfg(test)]
mod orphans;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod reach;
#[cfg(test)]
mod records;
#[cfg(test)]
mod reuse;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod told;
#[cfg(test)]
mod users;
#[cfg(test)]
mod values;
