//! A file of gzip, unpacked as GNU gzip unpacks it.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// First bytes of a gzip file.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The text of a gzip file: all its members, one after the other. Zeros after the last one, as tapes and copies by blocks
/// leave them, are no part of it.
pub(crate) struct Unpacked<F> {
    /// The member that is being read; none once all are read.
    member: Option<GzDecoder<F>>,
}

impl<F: BufRead> Unpacked<F> {
    pub(crate) fn new(file: F) -> Self {
        Self { member: Some(GzDecoder::new(file)) }
    }
}

impl<F: BufRead> Read for Unpacked<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n_read = member.read(into)?;
            if n_read > 0 || into.is_empty() {
                return Ok(n_read);
            }
            let Some(ended) = self.member.take() else { break };
            let mut file = ended.into_inner();
            let (mut next, mut n_zeros) = (first(&mut file)?, 0_u64);
            while next == Some(0) {
                n_zeros += 1;
                file.consume(1);
                next = first(&mut file)?;
            }
            match next {
                None => {}
                Some(next) if next == GZIP[0] && n_zeros == 0 => self.member = Some(GzDecoder::new(file)),
                Some(_) => {
                    let message = "bytes that are no gzip are behind the end of its gzip: `gzip -dc FILE >NEW` unpacks what is \
                                   before them";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            }
        }
        Ok(0)
    }
}

/// The next byte of a file, which is not consumed; none at its end.
fn first(file: &mut impl BufRead) -> io::Result<Option<u8>> {
    Ok(file.fill_buf()?.first().copied())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Unpacked::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn members_and_zeros_are_read_as_gzip_reads_them() {
        let both = [packed("one\n"), packed(""), packed("two\n")].concat();
        assert_eq!(unpacked(&both).unwrap(), "one\ntwo\n");
        assert_eq!(unpacked(&[&both[..], &[0; 700]].concat()).unwrap(), "one\ntwo\n");
        let said = unpacked(&[&both[..], b"more"].concat()).unwrap_err().to_string();
        assert!(said.contains("behind the end of its gzip"), "{said}");
        assert!(unpacked(&both[..both.len() - 3]).is_err(), "it is cut off");
    }
}
