// Pages of one row group's columns, read from the file one at a time. Sizes are checked before
// memory is taken, and a page is unpacked by codec.rs, which never writes more than was announced.
// One thread.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use crate::codec::{unpack, Codec};
use crate::ffi::{bad, over, size_text, unread, Error, Limits};
use crate::thrift::{page_header, PageHeader, PageKind};

// The first error of the pages, which the parquet crate passes on as mere text.
pub type Failure = Arc<Mutex<Option<Error>>>;

const HEADER_STEPS: [u64; 3] = [1 << 10, 64 << 10, 4 << 20];

pub struct Pages {
    file: Arc<File>,
    at: u64,
    end: u64,
    codec: Option<Codec>,
    column: String,
    limits: Limits,
    failure: Failure,
    peeked: Option<(PageHeader, usize)>,
    kept: Option<Page>, // the dictionary, which was read beforehand
    longest: u64,       // bytes of the longest text in the dictionary
    values_left: i64,   // that the data pages may still have
}

fn codec_of(compression: Compression) -> Result<Option<Codec>, Error> {
    Ok(Some(match compression {
        Compression::UNCOMPRESSED => return Ok(None),
        Compression::SNAPPY => Codec::Snappy,
        Compression::GZIP(_) => Codec::Gzip,
        Compression::BROTLI(_) => Codec::Brotli,
        Compression::LZ4 => Codec::Lz4Hadoop,
        Compression::LZ4_RAW => Codec::Lz4Raw,
        Compression::ZSTD(_) => Codec::Zstd,
        Compression::LZO => return Err(bad("compressed by lzo, which is not read")),
    }))
}

fn encoding_of(code: i32) -> Result<Encoding, Error> {
    #[allow(deprecated)]
    Ok(match code {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return Err(bad(format!("damaged: a page has encoding {code}, which does not exist"))),
    })
}

impl Pages {
    fn new(
        file: &Arc<File>,
        file_size: u64,
        column: &ColumnChunkMetaData,
        limits: Limits,
        failure: &Failure,
    ) -> Result<Pages, Error> {
        let outside = || bad("damaged: a column lies outside the file");
        // Writers say 0 for a dictionary or data that are not there.
        let first = match (column.dictionary_page_offset(), column.data_page_offset()) {
            (Some(dictionary), data) if dictionary > 0 && data > 0 => dictionary.min(data),
            (Some(dictionary), _) if dictionary > 0 => dictionary,
            (_, data) => data,
        };
        let at = u64::try_from(first).map_err(|_| outside())?;
        let bytes = u64::try_from(column.compressed_size()).map_err(|_| outside())?;
        let end = at.checked_add(bytes).ok_or_else(outside)?;
        if end > file_size {
            return Err(outside());
        }
        let mut pages = Pages {
            file: file.clone(),
            at,
            end,
            codec: codec_of(column.compression())?,
            column: column.column_path().string(),
            limits,
            failure: failure.clone(),
            peeked: None,
            kept: None,
            longest: 0,
            values_left: column.num_values(),
        };
        pages.keep_dictionary(column.column_type())?;
        Ok(pages)
    }

    fn keep_dictionary(&mut self, kind: Type) -> Result<(), Error> {
        match self.header()? {
            Some((header, _)) if header.kind == PageKind::Dictionary => {}
            _ => return Ok(()),
        }
        let page = self.read()?;
        if let (Some(page), Type::BYTE_ARRAY) = (&page, kind) {
            self.longest = longest_text(page.buffer());
            if self.longest > self.limits.row_bytes {
                return Err(over(format!(
                    "column '{}' has a text of {} bytes, more than {}",
                    self.column,
                    self.longest,
                    size_text(self.limits.row_bytes)
                )));
            }
        }
        self.kept = page;
        Ok(())
    }

    fn exactly(&self, at: u64, size: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0u8; size as usize];
        self.file.read_exact_at(&mut bytes, at).map_err(unread)?;
        Ok(bytes)
    }

    // The header of the next page and its bytes; None at the end.
    fn header(&mut self) -> Result<Option<(PageHeader, usize)>, Error> {
        if self.peeked.is_some() || self.at >= self.end {
            return Ok(self.peeked);
        }
        let left = self.end - self.at;
        let mut last = Err(bad("damaged"));
        for step in HEADER_STEPS {
            let bytes = self.exactly(self.at, step.min(left))?;
            last = page_header(&bytes);
            if last.is_ok() || step >= left {
                break;
            }
        }
        let (header, size) = last?;
        self.check(&header, left - size as u64)?;
        self.peeked = Some((header, size));
        Ok(self.peeked)
    }

    fn check(&self, header: &PageHeader, left: u64) -> Result<(), Error> {
        let largest = header.plain_size.max(header.stored_size);
        if largest > self.limits.page_bytes {
            return Err(over(format!(
                "column '{}' has a page of {largest} bytes, more than {}",
                self.column,
                size_text(self.limits.page_bytes)
            )));
        }
        if u64::from(header.values) > self.limits.page_values {
            return Err(over(format!(
                "column '{}' has a page of {} values, more than {}",
                self.column, header.values, self.limits.page_values
            )));
        }
        // Here a text may be longer than its bytes: it repeats the one before.
        if header.encoding == 7 && header.plain_size > self.limits.row_bytes {
            return Err(over(format!(
                "column '{}' has a page of {} bytes in the encoding DELTA_BYTE_ARRAY, more than {}",
                self.column,
                header.plain_size,
                size_text(self.limits.row_bytes)
            )));
        }
        if header.stored_size > left {
            return Err(bad(format!(
                "damaged: a page of column '{}' is longer than the column",
                self.column
            )));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<Page>, Error> {
        loop {
            let Some((header, size)) = self.header()? else { return Ok(None) };
            self.peeked = None;
            let begin = self.at + size as u64;
            self.at = begin + header.stored_size;
            if header.kind == PageKind::Other {
                continue; // a page of an index
            }
            if header.kind != PageKind::Dictionary {
                self.values_left -= i64::from(header.values);
                if self.values_left < 0 {
                    return Err(bad(format!(
                        "damaged: the pages of column '{}' have more values than announced",
                        self.column
                    )));
                }
            }
            let stored = self.exactly(begin, header.stored_size)?;
            return self.page(header, stored).map(Some);
        }
    }

    fn page(&self, header: PageHeader, stored: Vec<u8>) -> Result<Page, Error> {
        if let Some(expected) = header.crc {
            let mut crc = flate2::Crc::new();
            crc.update(&stored);
            if crc.sum() != expected {
                return Err(bad(format!(
                    "damaged: the checksum of a page of column '{}' does not fit",
                    self.column
                )));
            }
        }
        let buf = Bytes::from(self.unpacked(&header, stored)?);
        let encoding = encoding_of(header.encoding)?;
        Ok(match header.kind {
            PageKind::Dictionary => {
                Page::DictionaryPage { buf, num_values: header.values, encoding, is_sorted: false }
            }
            PageKind::DataV2 => Page::DataPageV2 {
                buf,
                num_values: header.values,
                encoding,
                num_nulls: header.nulls,
                num_rows: header.rows,
                def_levels_byte_len: header.def_levels as u32,
                rep_levels_byte_len: header.rep_levels as u32,
                is_compressed: header.is_compressed,
                statistics: None,
            },
            _ => Page::DataPage {
                buf,
                num_values: header.values,
                encoding,
                def_level_encoding: encoding_of(header.def_levels)?,
                rep_level_encoding: encoding_of(header.rep_levels)?,
                statistics: None,
            },
        })
    }

    // The bytes of a page as they were before compression.
    fn unpacked(&self, header: &PageHeader, stored: Vec<u8>) -> Result<Vec<u8>, Error> {
        let wrong =
            || bad(format!("damaged: sizes of a page of column '{}' do not fit", self.column));
        let mut levels = 0; // bytes in front that are never compressed
        if header.kind == PageKind::DataV2 {
            let def = usize::try_from(header.def_levels).map_err(|_| wrong())?;
            let rep = usize::try_from(header.rep_levels).map_err(|_| wrong())?;
            levels = def + rep;
            if levels > stored.len() || levels > header.plain_size as usize {
                return Err(wrong());
            }
        }
        let codec = self.codec.filter(|_| header.kind != PageKind::DataV2 || header.is_compressed);
        let Some(codec) = codec else {
            if stored.len() as u64 != header.plain_size {
                return Err(wrong());
            }
            return Ok(stored);
        };
        let mut plain = vec![0u8; header.plain_size as usize];
        plain[..levels].copy_from_slice(&stored[..levels]);
        if plain.len() > levels {
            unpack(codec, &stored[levels..], &mut plain[levels..])?;
        }
        Ok(plain)
    }

    // Keeps our error and hands the crate one of its own.
    fn told<T>(&self, result: Result<T, Error>) -> ParquetResult<T> {
        result.map_err(|error| {
            let text = error.message.clone();
            self.failure.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
            ParquetError::General(text)
        })
    }
}

// Texts of a dictionary lie one after the other, each behind its length.
fn longest_text(mut bytes: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let size = u32::from_le_bytes(*head) as usize;
        if size > rest.len() {
            break; // the decoder says so
        }
        longest = longest.max(size as u64);
        bytes = &rest[size..];
    }
    longest
}

impl Iterator for Pages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<ParquetResult<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        if let Some(page) = self.kept.take() {
            return Ok(Some(page));
        }
        let page = self.read();
        self.told(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        if self.kept.is_some() {
            return Ok(Some(PageMetadata { num_rows: None, num_levels: None, is_dict: true }));
        }
        let header = self.header();
        Ok(self.told(header)?.map(|(header, _)| PageMetadata {
            num_rows: (header.kind == PageKind::DataV2).then_some(header.rows as usize),
            num_levels: (header.kind != PageKind::Dictionary).then_some(header.values as usize),
            is_dict: header.kind == PageKind::Dictionary,
        }))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.get_next_page().map(|_| ())
    }
}

// One row group, as the crate's reader of records wants it.
pub struct Group {
    metadata: Arc<ParquetMetaData>,
    index: usize,
    pages: Vec<Mutex<Option<Pages>>>,
}

impl Group {
    pub fn open(
        file: &Arc<File>,
        file_size: u64,
        metadata: &Arc<ParquetMetaData>,
        index: usize,
        limits: Limits,
        failure: &Failure,
    ) -> Result<Group, Error> {
        let mut pages = Vec::new();
        for column in metadata.row_group(index).columns() {
            let one = Pages::new(file, file_size, column, limits, failure)?;
            pages.push(Mutex::new(Some(one)));
        }
        Ok(Group { metadata: metadata.clone(), index, pages })
    }

    fn row_group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.index)
    }

    // How many rows to decode at once, so that they take no more than the limits allow even when
    // each has the longest texts.
    pub fn rows_at_once(&self, limits: &Limits) -> usize {
        let group = self.row_group();
        let rows = group.num_rows().max(1) as u64;
        let average = (group.total_byte_size().max(0) as u64 / rows).max(1);
        let mut most = (4 * limits.batch_bytes / average).clamp(1, 4096);
        let longest = |one: &Mutex<Option<Pages>>| {
            one.lock().ok().and_then(|pages| pages.as_ref().map(|p| p.longest)).unwrap_or(0)
        };
        let longest_row: u64 = self.pages.iter().map(longest).sum();
        most = most.min((limits.part_bytes / longest_row.max(1)).max(1));
        let repeats = |column: &ColumnChunkMetaData| {
            column.encodings().any(|one| one == Encoding::DELTA_BYTE_ARRAY)
        };
        if group.columns().iter().any(repeats) {
            most = most.min((limits.part_bytes / limits.row_bytes).max(1));
        }
        most as usize
    }
}

impl RowGroups for Group {
    fn num_rows(&self) -> usize {
        self.row_group().num_rows() as usize
    }

    fn column_chunks(&self, i: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let taken = self.pages.get(i).and_then(|one| one.lock().ok()?.take());
        let pages = taken.ok_or_else(|| ParquetError::General(format!("no column {i}")))?;
        Ok(Box::new(OneChunk(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.row_group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

struct OneChunk(Option<Pages>);

impl Iterator for OneChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| Ok(Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for OneChunk {}
