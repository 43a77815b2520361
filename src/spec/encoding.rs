//! Encodings and compressions of files that are not UTF-8 text, and the tools that convert them.

/// The tool that makes UTF-8 of the most likely one-byte encoding.
pub const LATIN_1: &str =
    "of Latin-1, as Windows writes, `iconv -f WINDOWS-1252 -t UTF-8 OLD >NEW` makes UTF-8";

/// The number of bytes at the beginning of a file by which its kind is recognized.
pub const BEGINNING: usize = 512;

/// Advice on a file that begins with these bytes, if they show its kind; gzip is not among the kinds.
pub fn advice(start: &[u8]) -> Option<&'static str> {
    match start {
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            Some("it is compressed by bzip2: `bunzip2 -k FILE` unpacks it")
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("it is compressed by xz: `unxz -k FILE` unpacks it"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("it is compressed by zstd: `unzstd FILE` unpacks it"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("it is compressed by lz4: `unlz4 FILE` unpacks it"),
        [b'P', b'K', 3, 4, ..] if is_spreadsheet(start) => {
            Some("it is a spreadsheet, as .xlsx: save it as CSV, in UTF-8")
        }
        [b'P', b'K', 3, 4, ..] => Some("it is a zip archive: `unzip FILE` unpacks it"),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            Some("it is UTF-32: `iconv -f UTF-32 -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Some("it is UTF-16: `iconv -f UTF-16 -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8")
        }
        [b'P', b'A', b'R', b'1', ..] => Some(
            "it is Parquet: `python3 -c 'import pandas; pandas.read_parquet(\"FILE\").to_csv(\"NEW\", index=False)'` makes CSV",
        ),
        _ if start.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) => {
            Some("it is an archive of tar: `tar -xf FILE` unpacks it")
        }
        _ => wide(start),
    }
}

/// The number of bytes by which an encoding without a mark is recognized.
const TOLD_BY: usize = 8;

/// Advice on text of two or four bytes a character without a byte order mark: its first characters are ASCII in all documents, and
/// so have zeros beside them.
fn wide(start: &[u8]) -> Option<&'static str> {
    let start = &start[..start.len().min(TOLD_BY)];
    let is_of = |zeros: &[bool]| {
        let characters = start.chunks_exact(zeros.len());
        let has_zeros =
            |bytes: &[u8]| bytes.iter().zip(zeros).all(|(byte, is_zero)| (*byte == 0) == *is_zero);
        characters.len() > 1 && { characters }.all(has_zeros)
    };
    if is_of(&[false, true]) {
        Some(
            "it is UTF-16 without a mark: `iconv -f UTF-16LE -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8",
        )
    } else if is_of(&[true, false]) {
        Some(
            "it is UTF-16 without a mark: `iconv -f UTF-16BE -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8",
        )
    } else if is_of(&[false, true, true, true]) {
        Some(
            "it is UTF-32 without a mark: `iconv -f UTF-32LE -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8",
        )
    } else if is_of(&[true, true, true, false]) {
        Some(
            "it is UTF-32 without a mark: `iconv -f UTF-32BE -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8",
        )
    } else {
        None
    }
}

/// The position and the bytes of the mark in a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Whether a zip archive is a spreadsheet, by the name of its first file.
fn is_spreadsheet(start: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [
        b"[Content_Types].xml",
        b"_rels/",
        b"xl/",
        b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
    ];
    start.get(30..).is_some_and(|name| NAMES.iter().any(|start| name.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The encoding named in the advice on a file; the text if there is none.
    fn told(bytes: &[u8]) -> &str {
        let Some(advice) = advice(bytes) else { return "" };
        advice.split("iconv -f ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or(advice)
    }

    #[test]
    fn wide_encodings_are_told_with_and_without_a_mark() {
        let text = "job_id,größe";
        let utf16 = |of: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(of).collect::<Vec<u8>>();
        let utf32 =
            |of: fn(u32) -> [u8; 4]| text.chars().flat_map(|letter| of(letter.into())).collect::<Vec<u8>>();
        let marked = |mark: &[u8], text: &[u8]| [mark, text].concat();
        for (bytes, expected) in [
            (utf16(u16::to_le_bytes), "UTF-16LE"),
            (utf16(u16::to_be_bytes), "UTF-16BE"),
            (utf32(u32::to_le_bytes), "UTF-32LE"),
            (utf32(u32::to_be_bytes), "UTF-32BE"),
            (marked(b"\xff\xfe", &utf16(u16::to_le_bytes)), "UTF-16"),
            (marked(b"\xfe\xff", &utf16(u16::to_be_bytes)), "UTF-16"),
            (marked(b"\xff\xfe\0\0", &utf32(u32::to_le_bytes)), "UTF-32"),
            (marked(b"\0\0\xfe\xff", &utf32(u32::to_be_bytes)), "UTF-32"),
            (text.as_bytes().to_vec(), ""),
            (b"a\0b,c,d,e,f".to_vec(), ""),
            (vec![0; 600], ""),
            (Vec::new(), ""),
            (b"{\0".to_vec(), ""),
        ] {
            assert_eq!(told(&bytes), expected, "{bytes:?}");
        }
    }
}
