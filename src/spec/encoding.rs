//! Encodings and compressions of files that are not the text that is read, and what makes text of them.

/// What makes UTF-8 of the one-byte encoding that is most likely.
pub const LATIN_1: &str =
    "of Latin-1, as Windows writes, `iconv -f WINDOWS-1252 -t UTF-8 OLD >NEW` makes UTF-8";

/// What to do with a file that begins with these bytes, where they tell what it is; gzip is not among them.
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
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Some("it is UTF-16: `iconv -f UTF-16 -t UTF-8 OLD >NEW` makes UTF-8, or save it as UTF-8")
        }
        [b'P', b'A', b'R', b'1', ..] => Some(
            "it is Parquet: `python3 -c 'import pandas; pandas.read_parquet(\"FILE\").to_csv(\"NEW\", index=False)'` makes CSV",
        ),
        _ if start.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) => {
            Some("it is an archive of tar: `tar -xf FILE` unpacks it")
        }
        _ => None,
    }
}

/// What an archive of tar has, and where.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Is a zip archive a spreadsheet, by the name of the first file in it?
fn is_spreadsheet(start: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [
        b"[Content_Types].xml",
        b"_rels/",
        b"xl/",
        b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
    ];
    start.get(30..).is_some_and(|name| NAMES.iter().any(|start| name.starts_with(start)))
}
