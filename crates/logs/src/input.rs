//! A log as lines of text: streamed, unpacked where it is gzip.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Take};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apportion::spec::lookup::load_error;
use apportion::spec::{Source, SpecError, encoding, path_text};

use crate::unpacked::{GZIP, Unpacked};

/// The longest line that is read, and the most blank lines one after another, in bytes.
const LINE_MAX: u64 = 1 << 26;

/// The most lines of a record: a quote that is not closed within them is taken as part of its own line.
const RECORD_LINES_MAX: usize = 1000;

/// The most lines that are joined to a line with too few cells to make one row.
const BROKEN_LINES_MAX: usize = 100;

/// The most that is read of a log, unpacked, in bytes.
const SIZE_MAX: u64 = 1 << 34;

/// The lines of a log.
pub(crate) struct Input {
    /// Name of the log in error messages.
    pub(crate) name: String,
    /// Text that is still to be read, up to the limit of size.
    lines: Take<Box<dyn BufRead>>,
    /// Lines that were read and put back, with their ends.
    put_back: VecDeque<Vec<u8>>,
    /// The line read last, without its end.
    buffer: Vec<u8>,
    /// Number of that line, from 1.
    number: u64,
    /// A flag: once it is raised, the log is read no further.
    stop: Option<Arc<AtomicBool>>,
}

/// Whether a line is an error message of sacct or of a library of Slurm. It stands amid the output where both go to one
/// file.
pub(crate) fn is_error_line(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let has = |words: &[u8]| line.windows(words.len()).any(|part| part == words);
    (line.starts_with(b"sacct: ") || (line.starts_with(b"slurm") && has(b"error"))) && !line.contains(&b'|')
}

/// State of quotes at the end of the bytes read so far.
#[derive(Default)]
struct Quotes {
    /// Whether the last byte is inside quotes.
    are_open: bool,
    last: Option<u8>,
    /// Whether the last byte closed a quoted text. One more quote opens it again: a doubled quote stands for one.
    has_closed: bool,
}

impl Quotes {
    fn step(&mut self, byte: u8) {
        let is_quote = byte == b'"';
        if self.are_open {
            (self.are_open, self.has_closed) = (!is_quote, is_quote);
        } else {
            let can_open = self.has_closed || matches!(self.last, None | Some(b','));
            (self.are_open, self.has_closed) = (is_quote && can_open, false);
        }
        self.last = Some(byte);
    }
}

impl Input {
    /// Opens a file, by the name that [`path_text`] gives its path; `-` is standard input.
    pub(crate) fn open(name: &str) -> Result<Self, SpecError> {
        if name == "-" {
            return Self::new("standard input", Box::new(io::stdin()));
        }
        let path = path_text::to_path(name);
        if path.is_dir() {
            let help = "name a file in it".to_owned();
            return Err(SpecError::about(name, "it is a folder, no log", Some(help)));
        }
        let file = File::open(&path).map_err(|error| load_error(&path, &error))?;
        Self::new(name, Box::new(file))
    }

    /// An input of plain text or gzip.
    pub(crate) fn new(name: &str, from: Box<dyn Read>) -> Result<Self, SpecError> {
        let (start, plain) = beginning(name, from)?;
        let lines: Box<dyn BufRead> = if start.starts_with(&GZIP) {
            let (start, unpacked) = beginning(name, Unpacked::new(plain))?;
            if start.starts_with(&GZIP) {
                let help = "it is packed twice: `gunzip -c FILE >NEW` unpacks it once".to_owned();
                return Err(SpecError::about(name, "gzip within gzip", Some(help)));
            }
            Box::new(unpacked)
        } else {
            Box::new(plain)
        };
        let (lines, put_back) = (lines.take(SIZE_MAX), VecDeque::new());
        Ok(Self { name: name.to_owned(), lines, put_back, buffer: Vec::new(), number: 0, stop: None })
    }

    /// Sets a flag that ends reading once it is raised.
    pub(crate) fn until(&mut self, stop: Option<Arc<AtomicBool>>) {
        self.stop = stop;
    }

    fn check_stop(&self) -> Result<(), SpecError> {
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(SpecError::about(self.name.clone(), "reading was stopped", None));
        }
        Ok(())
    }

    /// The next line that is not blank, with its number; none at the end.
    pub(crate) fn line(&mut self) -> Result<Option<(u64, &str)>, SpecError> {
        let mut n_blank = 0;
        loop {
            self.buffer.clear();
            let n_read = self.read_on()?;
            if n_read == 0 {
                return self.check_size().map(|()| None);
            }
            self.number += 1;
            if self.buffer.len() as u64 == LINE_MAX && !self.buffer.ends_with(b"\n") {
                let message =
                    format!("line {} is longer than {LINE_MAX} bytes, the most that is read", self.number);
                return Err(SpecError::about(self.name.clone(), message, None));
            }
            let is_all = !self.buffer.ends_with(b"\n");
            while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
                self.buffer.pop();
            }
            if self.number == 1 && is_all && self.buffer.contains(&b'\r') {
                let help = "`tr '\\r' '\\n' <OLD >NEW` makes lines of it".to_owned();
                return Err(SpecError::about(
                    self.name.clone(),
                    "its lines end in carriage returns alone",
                    Some(help),
                ));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
            n_blank += n_read as u64;
            if n_blank > LINE_MAX {
                let message = format!("more than {LINE_MAX} bytes of blank lines up to line {}", self.number);
                return Err(SpecError::about(self.name.clone(), message, None));
            }
        }
        self.text(self.number).map(|text| Some((self.number, text)))
    }

    /// Adds the next line to the buffer, with its end. Returns the number of its bytes, 0 at the end of the log.
    fn read_on(&mut self) -> Result<usize, SpecError> {
        self.check_stop()?;
        if let Some(line) = self.put_back.pop_front() {
            self.buffer.extend_from_slice(&line);
            return Ok(line.len());
        }
        let mut limited = (&mut self.lines).take(LINE_MAX);
        let read = limited.read_until(b'\n', &mut self.buffer);
        read.map_err(|error| unreadable(&self.name, self.number + 1, &error))
    }

    /// The next record of a table separated by commas, with the number of its first line: one line, or several where a
    /// quoted text holds their ends and together they are a row. Where they are none, the quote is a stray one, and the
    /// first line is the record.
    pub(crate) fn record(&mut self, is_row: impl Fn(&str) -> bool) -> Result<Option<(u64, &str)>, SpecError> {
        if self.line()?.is_none() {
            return Ok(None);
        }
        let first = self.number;
        let mut quotes = Quotes::default();
        self.buffer.iter().for_each(|byte| quotes.step(*byte));
        if quotes.are_open {
            let n_first = self.buffer.len();
            let behind = self.read_quoted(&mut quotes)?;
            if quotes.are_open || !str::from_utf8(&self.buffer).is_ok_and(is_row) {
                self.number = first;
                self.buffer.truncate(n_first);
                behind.into_iter().rev().for_each(|line| self.put_back.push_front(line));
            }
        }
        self.text(first).map(|text| Some((first, text)))
    }

    /// The next record of a table in which the separator cannot be quoted, with the number of its first line. A record is one line;
    /// a line with too few cells is joined with the following lines until it has enough. Lines without the separator belong to the
    /// row before them if its last cell is a text.
    pub(crate) fn joined(
        &mut self,
        by: char,
        (n_columns, ends_in_text): (usize, bool),
    ) -> Result<Option<(u64, &str)>, SpecError> {
        if self.line()?.is_none() {
            return Ok(None);
        }
        let first = self.number;
        if is_error_line(&self.buffer) {
            return self.text(first).map(|text| Some((first, text)));
        }
        let count = |bytes: &[u8]| str::from_utf8(bytes).map_or(0, |text| text.matches(by).count() + 1);
        let n_first = self.buffer.len();
        let (mut n, mut behind) = (count(&self.buffer), Vec::new());
        while (n < n_columns || (n == n_columns && ends_in_text)) && behind.len() < BROKEN_LINES_MAX {
            let before = self.buffer.len();
            self.buffer.push(b'\n');
            if self.read_on()? == 0 {
                self.buffer.pop();
                break;
            }
            let line = self.buffer[before + 1..].to_vec();
            let n_here = count(&line);
            // The line is a row, begins one, or is an error message.
            if n_here >= n_columns || (n == n_columns && n_here > 1) || is_error_line(&line) {
                self.buffer.truncate(before);
                self.put_back.push_front(line);
                break;
            }
            self.number += 1;
            behind.push(line);
            while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
                self.buffer.pop();
            }
            n += n_here - 1;
        }
        if n != n_columns {
            self.number = first;
            self.buffer.truncate(n_first);
            behind.into_iter().rev().for_each(|line| self.put_back.push_front(line));
        }
        self.text(first).map(|text| Some((first, text)))
    }

    /// Adds lines to the buffer until its quotes are closed. Returns these lines, with their ends.
    fn read_quoted(&mut self, quotes: &mut Quotes) -> Result<Vec<Vec<u8>>, SpecError> {
        let mut behind = Vec::new();
        while quotes.are_open && behind.len() < RECORD_LINES_MAX {
            let before = self.buffer.len();
            self.buffer.push(b'\n');
            if self.read_on()? == 0 {
                self.buffer.pop();
                break;
            }
            self.number += 1;
            behind.push(self.buffer[before + 1..].to_vec());
            while self.buffer.len() > before + 1 && matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
                self.buffer.pop();
            }
            self.buffer[before..].iter().for_each(|byte| quotes.step(*byte));
        }
        Ok(behind)
    }

    /// The buffer as text; `line` is the number of its first line.
    fn text(&self, line: u64) -> Result<&str, SpecError> {
        str::from_utf8(&self.buffer).map_err(|error| {
            let message = format!("line {line} is no UTF-8 text after its byte {}", error.valid_up_to());
            let help = format!("gzip and UTF-8 are read; {}", encoding::LATIN_1);
            let before = String::from_utf8_lossy(&self.buffer[..error.valid_up_to()]);
            let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
            let line = usize::try_from(line).unwrap_or(usize::MAX) + before.matches('\n').count();
            Source::new(self.name.clone(), "").at(line, column, message, Some(help))
        })
    }

    /// Gives the rest of the log in pieces to `take`, as bytes.
    pub(crate) fn bytes(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), SpecError>,
    ) -> Result<(), SpecError> {
        loop {
            self.check_stop()?;
            let piece = self.lines.fill_buf().map_err(|error| unreadable(&self.name, self.number, &error))?;
            if piece.is_empty() {
                return self.check_size();
            }
            let n_read = piece.len();
            take(piece)?;
            self.lines.consume(n_read);
        }
    }

    /// Refuses a log of which not all was read.
    fn check_size(&self) -> Result<(), SpecError> {
        if self.lines.limit() > 0 {
            return Ok(());
        }
        let message = format!("larger than {SIZE_MAX} bytes unpacked, the most that is read of a log");
        let help = "read it in parts, such as one for each month".to_owned();
        Err(SpecError::about(self.name.clone(), message, Some(help)))
    }
}

/// A file whose first bytes were read already.
type Begun<F> = BufReader<Chain<Cursor<Vec<u8>>, F>>;

/// The first bytes of a file, enough to tell its kind, and the file from its beginning without a byte order mark of UTF-8. A
/// file that is no text by these bytes is refused.
fn beginning<F: Read>(name: &str, mut file: F) -> Result<(Vec<u8>, Begun<F>), SpecError> {
    let mut start = Vec::new();
    let read = (&mut file).take(encoding::BEGINNING as u64).read_to_end(&mut start);
    read.map_err(|error| unreadable(name, 0, &error))?;
    if let Some(advice) = encoding::advice(&start) {
        return Err(SpecError::about(name, "it is no plain text", Some(advice.to_owned())));
    }
    if start.starts_with("\u{feff}".as_bytes()) {
        start.drain(..3);
    }
    let whole = Cursor::new(start.clone()).chain(file);
    Ok((start, BufReader::with_capacity(1 << 17, whole)))
}

fn unreadable(name: &str, line: u64, error: &io::Error) -> SpecError {
    let message = match line.saturating_sub(1) {
        0 => format!("cannot be read: {error}"),
        last => format!("cannot be read after line {last}: {error}"),
    };
    SpecError::about(name, message, None)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// The error at which reading a text line by line ends, with at most `most` bytes read.
    fn said(text: impl Read + 'static, most: u64) -> String {
        let mut input = Input::new("log", Box::new(text)).expect("a text");
        input.lines.set_limit(most);
        loop {
            match input.line() {
                Ok(Some(_)) => {}
                Ok(None) => return String::new(),
                Err(error) => return error.to_string(),
            }
        }
    }

    /// Reader that gives one byte at a time, as a slow pipe may.
    struct Slow<R>(R);

    impl<R: Read> Read for Slow<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(1);
            self.0.read(&mut into[..most])
        }
    }

    #[test]
    fn what_a_file_is_does_not_depend_on_how_much_comes_at_a_time() {
        let packed = |text: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).expect("in memory");
            encoder.finish().expect("in memory")
        };
        let read = |bytes: &[u8]| {
            let mut input = Input::new("log", Box::new(Slow(Cursor::new(bytes.to_vec()))))?;
            let mut all = Vec::new();
            input.bytes(|piece| {
                all.extend_from_slice(piece);
                Ok(())
            })?;
            Ok::<_, SpecError>(String::from_utf8(all).expect("text"))
        };
        let text = "a,b\n1,2\n";
        let marked = format!("\u{feff}{text}");
        for bytes in [text.as_bytes(), marked.as_bytes()] {
            assert_eq!(read(bytes).expect("text"), text);
            assert_eq!(read(&packed(bytes)).expect("text"), text);
            let mut lines = Input::new("log", Box::new(Slow(Cursor::new(bytes.to_vec())))).expect("text");
            assert_eq!(lines.line().expect("a line"), Some((1, "a,b")));
        }
        let mut tar = vec![b'a'; 600];
        tar[257..262].copy_from_slice(b"ustar");
        let in_members = [packed(&tar[..100]), packed(&tar[100..])].concat();
        let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (bytes, said) in [
            (&in_members, "`tar -xf FILE`"),
            (&tar, "`tar -xf FILE`"),
            (&utf16, "iconv -f UTF-16 "),
            (&packed(&packed(text.as_bytes())), "packed twice"),
        ] {
            let error = format!("{:?}", read(bytes).expect_err(said));
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    #[test]
    fn a_log_without_an_end_is_refused_with_the_limit() {
        assert_eq!(said("a\nb\n".as_bytes(), 5), "");
        let expected = "log: larger than 17179869184 bytes unpacked, the most that is read of a log";
        assert_eq!(said(io::repeat(b'a').take(3).chain("\nb\n".as_bytes()), 6), expected);
        assert_eq!(said("a\nb\n".as_bytes(), 4), expected);
        let expected = "log: line 1 is longer than 67108864 bytes, the most that is read";
        assert_eq!(said(io::repeat(0), SIZE_MAX), expected);
    }
}
