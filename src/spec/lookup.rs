//! The sources of documents: files, standard input, or the binary itself.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::spec::document::{Source, SpecError};
use crate::spec::encoding;
use crate::spec::nearest::{did_you_mean, name_list, suggestion};
use crate::spec::path_text;

/// The largest file that is read, in bytes.
pub const FILE_SIZE_MAX: u64 = 2 << 30;

/// Bytes of a text that are checked before the rest is read: what has no end is rarely text.
const CHECKED: u64 = 1 << 20;

/// Advice on a file with zeros in it.
const NO_TEXT: &str = "text has no zeros: is it the right file?";

/// A document that ships with the program: its name and text.
pub type Embedded = (&'static str, &'static str);

impl Source {
    /// Reads the file at a path; `-` is standard input. Bytes of the path that are not UTF-8 are as [`path_text`] writes them.
    ///
    /// # Errors
    /// If it cannot be read, is a folder, is larger than [`FILE_SIZE_MAX`], or is not UTF-8.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SpecError> {
        let path = path.as_ref();
        let name = path_text::of(path);
        let bytes = read_named(path, |read| match no_text_at(read) {
            Some(valid) => Err(not_text(name.clone(), read, valid)),
            None => Ok(()),
        })?;
        // Text of other encodings may be valid UTF-8, too, with zeros in it.
        let start = &bytes[..bytes.len().min(encoding::BEGINNING)];
        if let Some(advice) = start.contains(&0).then(|| encoding::advice(start)).flatten() {
            return Err(SpecError::about(name, "it is no plain text", Some(advice.to_owned())));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => Err(not_text(name, error.as_bytes(), error.utf8_error().valid_up_to())),
        }
    }

    /// A document in the binary.
    #[must_use]
    pub fn embedded(name: &str, text: &str) -> Self {
        Self::new(format!("<embedded {name}>"), text)
    }

    /// The embedded document of this name, or the file at this path. An argument with a path separator, ending in `.yaml`, `.yml`
    /// or `.json`, or equal to `-`, is a path; any other is a name first.
    ///
    /// # Errors
    /// If there is neither, with the known names and the nearest of them. Else as [`load`](Self::load).
    pub fn find(what: &str, name_or_path: &str, embedded: &[Embedded]) -> Result<Self, SpecError> {
        let path = path_text::to_path(name_or_path);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_path = name_or_path == "-"
            || name_or_path.contains(std::path::is_separator)
            || matches!(extension, "yaml" | "yml" | "json");
        if is_path {
            return Self::load(path);
        }
        if let Some((name, text)) = embedded.iter().find(|(name, _)| *name == name_or_path) {
            return Ok(Self::embedded(name, text));
        }
        // A pipe is read like a file, and a link to nothing is reported as one.
        if path.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
            return Self::load(path);
        }
        let names = || embedded.iter().map(|(name, _)| *name);
        let message =
            format!("unknown {what} `{name_or_path}`, expected a file or one of {}", name_list(names()));
        let help = if path.is_dir() {
            Some(format!("`{name_or_path}` is a folder: name a file in it"))
        } else {
            suggestion(name_or_path, names())
        };
        Err(SpecError::about("", message, help))
    }
}

/// Reads a file that is not text.
///
/// # Errors
/// If it cannot be read, is a folder, or is larger than [`FILE_SIZE_MAX`].
pub fn read_bytes(path: impl AsRef<Path>) -> Result<Vec<u8>, SpecError> {
    read_named(path.as_ref(), |_| Ok(()))
}

/// Reads a file. If there is more than [`CHECKED`] of it, that much is checked before the rest is read.
fn read_named(path: &Path, check: impl FnOnce(&[u8]) -> Result<(), SpecError>) -> Result<Vec<u8>, SpecError> {
    let path = path.to_str().map_or(path.into(), path_text::to_path);
    let failed = |error: io::Error| load_error(&path, &error);
    let mut bytes = Vec::new();
    let mut file: Box<dyn Read> = if *path == *Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = fs::File::open(&path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(load_error(&path, &io::ErrorKind::IsADirectory.into()));
        }
        bytes.reserve(usize::try_from(about.len().min(FILE_SIZE_MAX)).unwrap_or(0));
        Box::new(file)
    };
    (&mut file).take(CHECKED).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == CHECKED {
        check(&bytes)?;
        file.take(FILE_SIZE_MAX + 1 - CHECKED).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err(load_error(&path, &io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

/// The first byte that no text has: of a letter that is not UTF-8, unless the text goes on behind it, or zero.
fn no_text_at(bytes: &[u8]) -> Option<usize> {
    let broken = str::from_utf8(bytes).err().filter(|error| error.error_len().is_some());
    let zero = bytes.iter().position(|byte| *byte == 0);
    broken.map(|error| error.valid_up_to()).into_iter().chain(zero).min()
}

/// The complaint about a file that cannot be read.
pub fn load_error(path: &Path, error: &io::Error) -> SpecError {
    let name = path_text::of(path);
    match error.kind() {
        io::ErrorKind::NotFound => {
            let is_link = path.symlink_metadata().is_ok_and(|about| about.is_symlink());
            let message = if is_link {
                "this is a link, and where it leads there is nothing"
            } else {
                "there is no such file"
            };
            let near = nearest_file(path).map(|near| format!("did you mean `{near}`?"));
            SpecError::about(name, message, Some(near.unwrap_or_else(|| looked_for(path))))
        }
        io::ErrorKind::IsADirectory => {
            let help = "name a file in it".to_owned();
            SpecError::about(name, "this is a folder, expected a file", Some(help))
        }
        io::ErrorKind::PermissionDenied => {
            let help = "let this user read it and enter its folders, by `chmod` or as its owner".to_owned();
            SpecError::about(name, format!("cannot be read: {error}"), Some(help))
        }
        io::ErrorKind::FileTooLarge => {
            let help = "logs of clusters, read by `--from`, may be larger".to_owned();
            let message = format!("the file is larger than {FILE_SIZE_MAX} bytes, the most that is read");
            SpecError::about(name, message, Some(help))
        }
        _ => SpecError::about(name, format!("cannot be read: {error}"), None),
    }
}

/// The folder in which a file was looked for.
fn looked_for(path: &Path) -> String {
    let folder = path.parent().and_then(|folder| {
        if folder.as_os_str().is_empty() {
            std::env::current_dir().ok()
        } else {
            std::path::absolute(folder).ok()
        }
    });
    let Some(folder) = folder else { return "name a file that is there".to_owned() };
    let text = path_text::of(&folder);
    if folder.is_dir() {
        format!("it was looked for in `{text}`")
    } else {
        format!("there is no folder `{text}`")
    }
}

/// The file in the same folder with the most similar name.
fn nearest_file(path: &Path) -> Option<String> {
    let parent = path.parent()?;
    let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let mut names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .take(10_000)
        .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.exists()))
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    let near = did_you_mean(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(path_text::of(parent.join(near)))
}

fn not_text(name: String, bytes: &[u8], valid: usize) -> SpecError {
    let is_zero = bytes.get(valid) == Some(&0);
    let help = match bytes {
        [0x1f, 0x8b, ..] => "it is compressed by gzip: `gunzip -k FILE` unpacks it",
        _ => encoding::advice(bytes).unwrap_or(if is_zero { NO_TEXT } else { encoding::LATIN_1 }),
    };
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
    let what = if is_zero { "0" } else { "not UTF-8" };
    let message = format!("byte {valid}, on line {line}, is {what}: expected a text file");
    // There is no excerpt: it would not be text.
    Source::new(name, "").at(line, column, message, Some(help.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMBEDDED: [Embedded; 2] = [("fifo", "a: 1"), ("isolated", "a: 2")];

    fn complaint(what: Result<Source, SpecError>) -> (String, Option<String>) {
        let diagnostic = what.unwrap_err().diagnostics.remove(0);
        (diagnostic.message, diagnostic.help)
    }

    #[test]
    fn text_of_another_encoding_is_refused_with_what_makes_text_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (bytes, expected) in [
            (utf16("format: a"), "`iconv -f UTF-16LE -t UTF-8 OLD >NEW`"),
            ([b"\xff\xfe".to_vec(), utf16("format: a")].concat(), "`iconv -f UTF-16 -t UTF-8 OLD >NEW`"),
        ] {
            fs::write(&path, bytes).unwrap();
            let (message, help) = complaint(Source::load(&path));
            assert_eq!(message, "it is no plain text");
            assert!(help.as_ref().is_some_and(|help| help.contains(expected)), "{help:?}");
        }
        fs::write(&path, "a: \0\n").unwrap();
        assert!(Source::load(&path).is_ok(), "a zero alone is for the reader of the document");
    }

    #[test]
    fn an_embedded_document_is_found_by_name() {
        let found = Source::find("policy", "isolated", &EMBEDDED).unwrap();
        assert_eq!((found.name.as_str(), &*found.text), ("<embedded isolated>", "a: 2"));
    }

    #[test]
    fn an_unknown_name_comes_with_the_known_ones() {
        let (message, help) = complaint(Source::find("policy", "fifi", &EMBEDDED));
        assert_eq!(message, "unknown policy `fifi`, expected a file or one of `fifo`, `isolated`");
        assert_eq!(help.as_deref(), Some("did you mean `fifo`?"));
    }

    #[test]
    fn a_missing_file_comes_with_the_nearest_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.yaml");
        fs::write(&path, "a: 3").unwrap();
        let found = Source::find("policy", path.to_str().unwrap(), &EMBEDDED).unwrap();
        assert_eq!(&*found.text, "a: 3");
        let (message, help) = complaint(Source::load(folder.path().join("mime.yaml")));
        assert_eq!(message, "there is no such file");
        assert_eq!(help, Some(format!("did you mean `{}`?", path.display())));
    }

    #[test]
    fn folders_and_binaries_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(complaint(Source::load(folder.path())).0, "this is a folder, expected a file");
        for (name, expected) in
            [("nothing-like-it", "it was looked for in `/"), ("a/b/c", "there is no folder `/")]
        {
            let help = complaint(Source::load(folder.path().join(name))).1.unwrap();
            assert!(help.starts_with(expected), "{help}");
        }
        let path = folder.path().join("x.yaml");
        fs::write(&path, b"a: 1\nb: \xff\xfe").unwrap();
        let (message, _) = complaint(Source::load(&path));
        assert_eq!(message, "byte 8, on line 2, is not UTF-8: expected a text file");
        let error = Source::load(&path).unwrap_err().to_string();
        assert!(error.contains("x.yaml:2:4: byte 8"), "{error}");
        // Of a large file, or one without end, no more than the beginning is read.
        for byte in [0_u8, 0xff] {
            let bytes = vec![byte; usize::try_from(CHECKED).unwrap() + 1];
            fs::write(&path, [b"a: 1\n", &bytes[..]].concat()).unwrap();
            let what = if byte == 0 { "0" } else { "not UTF-8" };
            let expected = format!("byte 5, on line 2, is {what}: expected a text file");
            assert_eq!(complaint(Source::load(&path)).0, expected);
        }
        let long = "ä".repeat(usize::try_from(CHECKED).unwrap());
        fs::write(&path, format!("a{long}")).unwrap();
        assert_eq!(Source::load(&path).unwrap().text.len(), long.len() + 1);
        fs::write(&path, b"\xff\xfea\0").unwrap();
        for (start, expected) in [
            (&b"\xff\xfea\0"[..], "it is UTF-16"),
            (b"BZh91AY&SY\x9a", "it is compressed by bzip2: `bunzip2"),
            (b"\xfd7zXZ\0\xff", "it is compressed by xz: `unxz"),
            (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: `unzstd"),
            (b"\x1f\x8b\x08", "it is compressed by gzip: `gunzip"),
            (b"a: M\xfcller", "of Latin-1, as Windows writes, `iconv"),
        ] {
            fs::write(&path, start).unwrap();
            let help = complaint(Source::load(&path)).1.unwrap();
            assert!(help.starts_with(expected), "{help}");
        }
    }
}
