// The unpacked bytes of a gzip or zstd file, of one or several members. One thread.
use std::fs::File;
use std::io::{BufReader, Read};

use crate::ffi::{bad, unread, Error};

const BUFFER: usize = 256 << 10;

pub struct Stream {
    name: &'static str,
    reader: Box<dyn Read>,
}

impl Stream {
    pub fn open(path: &str, codec: i32) -> Result<Stream, Error> {
        let file = BufReader::with_capacity(BUFFER, File::open(path).map_err(unread)?);
        match codec {
            0 => Ok(Stream {
                name: "gzip",
                reader: Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            }),
            1 => Ok(Stream {
                name: "zstd",
                reader: Box::new(zstd::stream::read::Decoder::with_buffer(file).map_err(unread)?),
            }),
            _ => Err(bad(format!("there is no codec {codec}"))),
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        loop {
            match self.reader.read(into) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error().is_some() => return Err(unread(e)),
                other => {
                    let name = self.name;
                    return other.map_err(|e| match e.kind() {
                        std::io::ErrorKind::UnexpectedEof => {
                            bad(format!("the {name} data end too early; was the file cut?"))
                        }
                        _ => bad(format!("the {name} data are damaged: {e}")),
                    });
                }
            }
        }
    }
}
