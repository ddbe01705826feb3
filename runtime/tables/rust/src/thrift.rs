// Reads as much of thrift's compact protocol as is needed before the parquet crate may see a file:
// whether a footer is whole and its lists as long as they say, and the header of a page. The crate
// itself makes room for as many items as a list claims. Pure functions; any thread.
use crate::ffi::{bad, over, Error, Limits};

const NESTING_MAX: usize = 48;

const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

pub struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

fn damaged() -> Error {
    bad("damaged: a header is not what Parquet's format says")
}

impl<'a> Reader<'a> {
    pub fn new(all: &'a [u8]) -> Reader<'a> {
        Reader { all, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let byte = *self.all.get(self.at).ok_or_else(damaged)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged())
    }

    fn integer(&mut self) -> Result<i64, Error> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    pub fn i32(&mut self) -> Result<i32, Error> {
        self.integer()?.try_into().map_err(|_| damaged())
    }

    fn pass(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes > (self.all.len() - self.at) as u64 {
            return Err(damaged());
        }
        self.at += bytes as usize;
        Ok(())
    }

    // The next field of a struct: its number and type; None at the end. `last`: the number before.
    pub fn field(&mut self, last: &mut i32) -> Result<Option<(i32, u8)>, Error> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let delta = i32::from(head >> 4);
        *last = if delta == 0 { self.i32()? } else { *last + delta };
        Ok(Some((*last, head & 0x0f)))
    }

    // Passes over a value and all in it. A list must have room for its items.
    pub fn skip(&mut self, kind: u8, nesting: usize) -> Result<(), Error> {
        if nesting > NESTING_MAX {
            return Err(damaged());
        }
        match kind {
            BOOL_TRUE | BOOL_FALSE => Ok(()),
            BYTE => self.pass(1),
            4..=6 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let size = self.varint()?;
                self.pass(size)
            }
            LIST | SET => self.skip_list(nesting),
            MAP => self.skip_map(nesting),
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, nesting + 1)?;
                }
                Ok(())
            }
            _ => Err(damaged()),
        }
    }

    fn skip_list(&mut self, nesting: usize) -> Result<(), Error> {
        let head = self.byte()?;
        let kind = head & 0x0f;
        let size = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        if size > (self.all.len() - self.at) as u64 {
            return Err(damaged());
        }
        if kind == BOOL_TRUE || kind == BOOL_FALSE {
            return self.pass(size);
        }
        for _ in 0..size {
            self.skip(kind, nesting + 1)?;
        }
        Ok(())
    }

    fn skip_map(&mut self, nesting: usize) -> Result<(), Error> {
        let size = self.varint()?;
        if size == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        for _ in 0..size {
            for kind in [kinds >> 4, kinds & 0x0f] {
                match kind {
                    BOOL_TRUE | BOOL_FALSE => self.pass(1)?,
                    _ => self.skip(kind, nesting + 1)?,
                }
            }
        }
        Ok(())
    }
}

// Succeeds for a whole FileMetaData whose schema is neither wider nor deeper than the limits.
pub fn check_footer(footer: &[u8], limits: &Limits) -> Result<(), Error> {
    let mut reader = Reader::new(footer);
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (2, LIST) => check_elements(&mut reader, limits)?,
            _ => reader.skip(kind, 0)?,
        }
    }
    Ok(())
}

// The elements of a schema are a tree, parents first; each says how many children follow.
fn check_elements(reader: &mut Reader, limits: &Limits) -> Result<(), Error> {
    let head = reader.byte()?;
    let count = if head >> 4 == 15 { reader.varint()? } else { u64::from(head >> 4) };
    if head & 0x0f != STRUCT {
        return Err(damaged());
    }
    // A list of Arrow is up to three levels of Parquet.
    let (columns, depth) = (4 * limits.columns, 3 * limits.depth + 1);
    if count > columns {
        return Err(over(format!("a schema of {count} elements, more than {columns}")));
    }
    let mut open: Vec<i32> = Vec::new();
    for _ in 0..count {
        let mut children = 0;
        let mut last = 0;
        while let Some((number, kind)) = reader.field(&mut last)? {
            match (number, kind) {
                (5, 5) => children = reader.i32()?,
                _ => reader.skip(kind, 0)?,
            }
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if children < 0 || i64::from(children) > count as i64 {
            return Err(damaged());
        }
        if children > 0 {
            open.push(children);
            if open.len() as u64 > depth {
                return Err(over(format!("types nested more than {} deep", limits.depth)));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Data,
    Dictionary,
    DataV2,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub struct PageHeader {
    pub kind: PageKind,
    pub plain_size: u64,
    pub stored_size: u64,
    pub crc: Option<u32>,
    pub values: u32,
    pub encoding: i32,
    // Of Data: encodings of the levels. Of DataV2: their bytes.
    pub def_levels: i32,
    pub rep_levels: i32,
    // Of DataV2.
    pub nulls: u32,
    pub rows: u32,
    pub is_compressed: bool,
}

fn size(value: i32) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| damaged())
}

// Reads a header at the beginning of `bytes`; also returns its length.
pub fn page_header(bytes: &[u8]) -> Result<(PageHeader, usize), Error> {
    let mut reader = Reader::new(bytes);
    let mut header = PageHeader {
        kind: PageKind::Other,
        plain_size: 0,
        stored_size: 0,
        crc: None,
        values: 0,
        encoding: 0,
        def_levels: 3,
        rep_levels: 3,
        nulls: 0,
        rows: 0,
        is_compressed: true,
    };
    let (mut last, mut seen, mut inner) = (0, 0u32, false);
    while let Some((number, kind)) = reader.field(&mut last)? {
        seen |= 1 << number.clamp(0, 31);
        match number {
            1 => {
                header.kind = match reader.i32()? {
                    0 => PageKind::Data,
                    2 => PageKind::Dictionary,
                    3 => PageKind::DataV2,
                    _ => PageKind::Other,
                }
            }
            2 => header.plain_size = u64::from(size(reader.i32()?)?),
            3 => header.stored_size = u64::from(size(reader.i32()?)?),
            4 => header.crc = Some(reader.i32()? as u32),
            5 | 7 | 8 if kind == STRUCT => {
                read_inner(&mut reader, number, &mut header)?;
                inner = inner
                    || matches!(
                        (number, header.kind),
                        (5, PageKind::Data) | (7, PageKind::Dictionary) | (8, PageKind::DataV2)
                    );
            }
            _ => reader.skip(kind, 0)?,
        }
    }
    if seen & 0b1110 != 0b1110 || (!inner && header.kind != PageKind::Other) {
        return Err(damaged());
    }
    Ok((header, reader.at()))
}

// Fields of DataPageHeader (5), DictionaryPageHeader (7) or DataPageHeaderV2 (8).
fn read_inner(reader: &mut Reader, of: i32, header: &mut PageHeader) -> Result<(), Error> {
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (of, number) {
            (5 | 7 | 8, 1) => header.values = size(reader.i32()?)?,
            (5 | 7, 2) | (8, 4) => header.encoding = reader.i32()?,
            (5, 3) | (8, 5) => header.def_levels = reader.i32()?,
            (5, 4) | (8, 6) => header.rep_levels = reader.i32()?,
            (8, 2) => header.nulls = size(reader.i32()?)?,
            (8, 3) => header.rows = size(reader.i32()?)?,
            (8, 7) => header.is_compressed = kind == BOOL_TRUE,
            _ => reader.skip(kind, 0)?,
        }
    }
    Ok(())
}
