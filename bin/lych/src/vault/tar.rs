//! A handful of small files in one, so that plain `tar` unpacks it (POSIX.1-1988 ustar).

/// One header, and the unit that contents are padded to.
const BLOCK: usize = 512;
/// Where fields of a header stand.
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Packs files, each readable by its owner alone; none if one is too long for the format.
pub(super) fn pack(files: &[(&str, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        out.extend(header(name, bytes.len())?);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks say that this is the end.
    out.resize(out.len() + 2 * BLOCK, 0);
    Some(out)
}

fn header(name: &str, len: usize) -> Option<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let size = format!("{len:011o}");
    let mut put = |at: usize, text: &[u8]| {
        header
            .get_mut(at..at + text.len())
            .map(|field| field.copy_from_slice(text))
    };
    if name.len() >= 100 || size.len() > 11 {
        return None;
    }
    put(0, name.as_bytes())?;
    put(100, b"0000600\0")?;
    put(108, b"0000000\0")?;
    put(116, b"0000000\0")?;
    put(SIZE.start, size.as_bytes())?;
    put(136, b"00000000000\0")?;
    put(156, b"0")?;
    put(257, b"ustar\x0000")?;
    let sum = checksum(&header);
    let text = format!("{sum:06o}\0 ");
    header.get_mut(CHECKSUM)?.copy_from_slice(text.as_bytes());
    Some(header)
}

/// The sum of a header's bytes, its own field taken for spaces.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    let each = header.iter().enumerate();
    each.map(|(at, byte)| {
        if CHECKSUM.contains(&at) {
            32
        } else {
            u32::from(*byte)
        }
    })
    .sum()
}

/// Unpacks plain files; none if it is anything else, or cut off.
pub(super) fn unpack(mut bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    loop {
        let (header, rest) = bytes.split_first_chunk::<BLOCK>()?;
        if header.iter().all(|byte| *byte == 0) {
            return Some(files);
        }
        if octal(header.get(CHECKSUM)?)? != u64::from(checksum(header)) {
            return None;
        }
        let is_plain = matches!(header.get(156)?, b'0' | 0);
        let len = usize::try_from(octal(header.get(SIZE)?)?).ok()?;
        let name = header.get(..100)?.split(|byte| *byte == 0).next()?;
        let name = str::from_utf8(name).ok().filter(|_| is_plain)?;
        files.push((name.to_owned(), rest.get(..len)?.to_vec()));
        bytes = rest.get(len.checked_next_multiple_of(BLOCK)?..)?;
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        let files = [("vault.age", vec![7; 700]), ("identity.age", Vec::new())];

        let packed = pack(&files).unwrap();
        let unpacked = unpack(&packed).unwrap();

        let expected: Vec<_> = files
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), bytes))
            .collect();
        assert_eq!(unpacked, expected);
    }

    #[test]
    fn what_is_cut_off_or_changed_in_a_header_or_is_something_else_is_none() {
        let packed = pack(&[("vault.age", vec![7; 700])]).unwrap();
        let mut changed = packed.clone();
        changed[3] ^= 1;

        assert_eq!(unpack(&changed), None);
        assert_eq!(unpack(&packed[..900]), None);
        assert_eq!(unpack(b""), None);
        assert_eq!(unpack(&[b'x'; 2000]), None);
    }
}
