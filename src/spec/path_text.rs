//! Paths as text, so that documents, digests and results can name files whose paths are not UTF-8.
//!
//! A path in UTF-8 is its own text. In other paths each byte that is not UTF-8 becomes a NUL and two hexadecimal digits, which is
//! unambiguous: no path contains a NUL.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The text of a path, from which [`to_path`] makes the same path.
pub fn of(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().as_os_str();
    let mut text = String::with_capacity(path.len());
    for chunk in path.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\0{byte:02x}");
        }
    }
    text
}

/// The path of a text. On systems whose paths are not bytes, a text with a NUL is a path that does not exist.
pub fn to_path(text: &str) -> Cow<'_, Path> {
    if cfg!(unix) && text.contains('\0') { from_bytes(bytes(text)).into() } else { Path::new(text).into() }
}

/// The byte at the beginning of a text, if that is one that is not UTF-8.
pub fn first_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix('\0')?.get(..2)?;
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (digits.bytes().all(is_digit) && !byte.is_ascii()).then_some(byte)
}

fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\0') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let byte = first_byte(&rest[at..]);
        bytes.push(byte.unwrap_or(0));
        rest = &rest[at + if byte.is_some() { 3 } else { 1 }..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_path_comes_back_from_its_text() {
        for (bytes, text) in [
            (&b"a/b.yaml"[..], "a/b.yaml"),
            ("größe".as_bytes(), "größe"),
            (b"a\xff/\xfe\xc3.csv", "a\0ff/\0fe\0c3.csv"),
            (b"", ""),
        ] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(of(path), text);
            assert_eq!(to_path(text), path);
        }
    }

    #[test]
    fn a_nul_that_stands_for_no_byte_stays_one() {
        for text in ["a\0", "a\0b", "a\x0041", "a\0FF", "a\0f\u{e9}"] {
            assert_eq!(to_path(text).as_os_str().as_bytes(), text.as_bytes(), "{text:?}");
        }
    }
}
