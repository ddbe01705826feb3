// Unpacks compressed bytes whose size is known beforehand, and never more than that: what a file
// claims is compared with what comes out. Pure functions; any thread.
use std::io::Read;

use crate::ffi::{bad, Error};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Snappy,
    Gzip,
    Brotli,
    Zstd,
    Lz4Frame,
    Lz4Raw,
    Lz4Hadoop, // what older writers of Parquet call LZ4
}

// Fills all of `out`.
pub fn unpack(codec: Codec, packed: &[u8], out: &mut [u8]) -> Result<(), Error> {
    match codec {
        Codec::Snappy => {
            let size = snap::raw::decompress_len(packed).map_err(|e| broken("snappy", e))?;
            same_size(size, out.len())?;
            let got = snap::raw::Decoder::new()
                .decompress(packed, out)
                .map_err(|e| broken("snappy", e))?;
            same_size(got, out.len())
        }
        Codec::Gzip => fill("gzip", flate2::read::MultiGzDecoder::new(packed), out),
        Codec::Brotli => fill("brotli", brotli::Decompressor::new(packed, 4096), out),
        Codec::Zstd => {
            let reader =
                zstd::stream::read::Decoder::with_buffer(packed).map_err(|e| broken("zstd", e))?;
            fill("zstd", reader, out)
        }
        Codec::Lz4Frame => fill("lz4", lz4_flex::frame::FrameDecoder::new(packed), out),
        Codec::Lz4Raw => lz4_block(packed, out),
        Codec::Lz4Hadoop => {
            if lz4_hadoop(packed, out).is_ok() {
                return Ok(());
            }
            lz4_block(packed, out)
        }
    }
}

fn broken(name: &str, why: impl std::fmt::Display) -> Error {
    bad(format!("{name} data is damaged: {why}"))
}

fn same_size(got: usize, wanted: usize) -> Result<(), Error> {
    if got == wanted {
        return Ok(());
    }
    Err(bad(format!("damaged: compressed data hold {got} bytes where {wanted} are announced")))
}

fn fill(name: &str, mut from: impl Read, out: &mut [u8]) -> Result<(), Error> {
    from.read_exact(out).map_err(|e| broken(name, e))?;
    let mut more = [0u8; 1];
    match from.read(&mut more) {
        Ok(0) => Ok(()),
        Ok(_) => same_size(out.len() + 1, out.len()),
        Err(e) => Err(broken(name, e)),
    }
}

fn lz4_block(packed: &[u8], out: &mut [u8]) -> Result<(), Error> {
    let got = lz4_flex::block::decompress_into(packed, out).map_err(|e| broken("lz4", e))?;
    same_size(got, out.len())
}

// Blocks with the sizes of both forms, in big-endian order, in front of each.
fn lz4_hadoop(mut packed: &[u8], mut out: &mut [u8]) -> Result<(), Error> {
    let wrong = || broken("lz4", "sizes of blocks do not fit");
    let take = |packed: &mut &[u8]| -> Result<usize, Error> {
        let (head, rest) = packed.split_first_chunk::<4>().ok_or_else(wrong)?;
        *packed = rest;
        Ok(u32::from_be_bytes(*head) as usize)
    };
    while !packed.is_empty() {
        let plain = take(&mut packed)?;
        let stored = take(&mut packed)?;
        if stored > packed.len() || plain > out.len() {
            return Err(wrong());
        }
        let (block, rest) = packed.split_at(stored);
        let (room, left) = out.split_at_mut(plain);
        lz4_block(block, room)?;
        packed = rest;
        out = left;
    }
    same_size(0, out.len())
}
