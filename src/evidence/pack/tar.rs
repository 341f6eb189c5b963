//! The headers of a tar file, in the one spelling that we write.
//!
//! Role: a name and a size to a block of POSIX ustar, and back. Not its role: which names are good.
//! Invariant: `parse` takes only what `header` gives, byte for byte.

/// Everything in a tar file is a multiple of this.
pub(super) const BLOCK: usize = 512;
const NAME: usize = 100;
const PREFIX: std::ops::Range<usize> = 345..500;
const SIZE: std::ops::Range<usize> = 124..136;
const SUM: std::ops::Range<usize> = 148..156;

/// The header of a plain file, or `None` where the format has no room for its name or size.
pub(super) fn header(name: &str, size: u64) -> Option<[u8; BLOCK]> {
    let (prefix, last) = split(name)?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, last.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    let size = format!("{size:011o}\0");
    (size.len() == SIZE.len()).then_some(())?;
    put(SIZE.start, size.as_bytes());
    put(136, b"00000000000\0");
    put(SUM.start, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    put(PREFIX.start, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

/// The name and size of a header that we would write like this.
pub(super) fn parse(block: &[u8; BLOCK]) -> Option<(String, u64)> {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
    };
    let (prefix, last) = (text(&block[PREFIX])?, text(&block[..NAME])?);
    let name = if prefix.is_empty() { last } else { format!("{prefix}/{last}") };
    let size = u64::from_str_radix(&text(&block[SIZE])?, 8).ok()?;
    (!name.is_empty() && header(&name, size)? == *block).then_some((name, size))
}

/// Zeros behind a file of this size.
pub(super) fn padding(size: u64) -> usize {
    usize::try_from(size.next_multiple_of(BLOCK as u64) - size).unwrap_or(0)
}

/// A long name goes into two fields, cut at a slash.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= NAME {
        return Some(("", name));
    }
    let slashes = name.char_indices().filter(|(_, sign)| *sign == '/').map(|(at, _)| at);
    let mut cuts = slashes.filter(|at| *at <= PREFIX.len() && name.len() - at - 1 <= NAME);
    cuts.next().map(|at| (&name[..at], &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_nothing_else_does() {
        let long = format!("evidence/{}/{}", "a".repeat(100), "b".repeat(90));
        for (name, size) in [("genesis.json", 0), ("journal/00000001.jsonl", 8_589_934_591), (long.as_str(), 7)] {
            let block = header(name, size).unwrap();
            assert_eq!(parse(&block), Some((name.to_owned(), size)));
            for at in 0..BLOCK * 8 {
                let mut changed = block;
                changed[at / 8] ^= 1 << (at % 8);
                assert_eq!(parse(&changed), None, "{name} bit {at}");
            }
        }
        assert_eq!(header(&"x".repeat(101), 1), None);
        assert_eq!(header("x", 8_589_934_592), None);
        assert_eq!((padding(0), padding(1), padding(512)), (0, 511, 0));
    }
}
