//! Fixed big-endian fields, taken from the front of a slice one after the other.

use sha2::block_api::compress256;

/// What is left to read.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    /// Takes the next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes one byte.
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes a number of eight bytes.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Confirms that nothing is left: a field too many is as wrong as one too few.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Returns the SHA-256 of these parts, one behind the other.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    use sha2::Digest as _;
    let mut hash = sha2::Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// Returns the SHA-256 of one piece.
///
/// Records are short, and so the bookkeeping of a hasher that takes parts costs a tenth of hashing one. Here whole
/// blocks go to the compression function from where they stand, and only the last is copied, to be padded (FIPS 180-4,
/// 5.1.1).
pub(crate) fn sha256_of(piece: &[u8]) -> [u8; 32] {
    let mut state = INITIAL;
    let (blocks, rest) = piece.as_chunks::<BLOCK>();
    compress256(&mut state, blocks);
    let mut last = [[0; BLOCK]; 2];
    let (text, padding) = last.as_flattened_mut().split_at_mut(rest.len());
    text.copy_from_slice(rest);
    if let Some(first) = padding.first_mut() {
        *first = 0x80;
    }
    // The length needs eight bytes behind the first of the padding.
    let needed = if rest.len() + 1 + 8 > BLOCK { 2 } else { 1 };
    let (last, _) = last.split_at_mut(needed);
    let bits = u64::try_from(piece.len()).map_or(u64::MAX, |len| len.wrapping_mul(8));
    if let Some(length) = last.as_flattened_mut().last_chunk_mut() {
        *length = bits.to_be_bytes();
    }
    compress256(&mut state, last);
    let mut digest = [0; 32];
    for (to, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *to = word.to_be_bytes();
    }
    digest
}

const BLOCK: usize = 64;

/// FIPS 180-4, 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_the_digest_that_its_parts_have() {
        let bytes: Vec<u8> = (0..1_000_u32).map(|at| (at * 31 % 251) as u8).collect();

        for len in 0..bytes.len() {
            let (piece, _) = bytes.split_at(len);
            let (front, back) = piece.split_at(len / 3);
            assert_eq!(sha256_of(piece), sha256(&[front, back]), "{len} bytes");
        }
    }
}
