// An Arrow IPC file or stream, read message by message. Sizes are checked before memory is taken.
// Compressed buffers are unpacked here, and the message's list of buffers is changed to fit, since
// the crate would make room for whatever size a buffer claims. One thread.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{root_as_footer, root_as_message, Block, CompressionType, MessageHeader};
use arrow_schema::SchemaRef;

use crate::codec::{unpack, Codec};
use crate::ffi::{bad, over, size_text, unread, Error, Limits};
use crate::source::{check_schema, no_panic, Facts, Source};

const MARK: &[u8; 6] = b"ARROW1";
const CONTINUES: [u8; 4] = [0xff; 4];
const UNPACKED: i64 = -1; // in place of a compressed buffer's size: it is as it was

// Where a message lies: its header, with the length in front, then its body.
#[derive(Clone, Copy)]
struct Place {
    at: u64,
    header: u64,
}

struct Message {
    header: Vec<u8>,
    body_at: usize, // in `whole`
    whole: Buffer,
    end: u64, // where the next one begins
}

struct Input {
    file: File,
    size: u64,
    limits: Limits,
}

pub struct IpcFile {
    input: Input,
    schema: SchemaRef,
    decoder: FileDecoder,
    places: Option<Vec<Place>>, // of the record batches; None: a stream
    dictionaries: Vec<Place>,   // of a file, not yet read
    at: u64,                    // of a stream: where the next message begins
    group: u64,                 // that comes next
}

impl Input {
    fn bytes(&self, at: u64, count: u64) -> Result<Vec<u8>, Error> {
        let end = at.checked_add(count).ok_or_else(outside)?;
        if end > self.size {
            return Err(outside());
        }
        let mut bytes = vec![0u8; count as usize];
        self.file.read_exact_at(&mut bytes, at).map_err(unread)?;
        Ok(bytes)
    }

    // The place of the message at `at`; None at the end of a stream.
    fn place(&self, at: u64) -> Result<Option<Place>, Error> {
        if at == self.size {
            return Ok(None); // the mark of the end may lack
        }
        let mut length = self.bytes(at, 4)?;
        let mut before = 4;
        if length == CONTINUES {
            length = self.bytes(at + 4, 4)?;
            before = 8;
        }
        let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
        Ok((length != 0).then_some(Place { at, header: before + length }))
    }

    fn message(&self, place: Place) -> Result<Message, Error> {
        if place.header > self.limits.footer_bytes {
            return Err(over(format!(
                "the header of a batch has {} bytes, more than {}",
                place.header,
                size_text(self.limits.footer_bytes)
            )));
        }
        let mut header = self.bytes(place.at, place.header)?;
        let before = prefix(&header)?;
        let (body, codec, buffers) = {
            let message = root_as_message(&header[before..])
                .map_err(|e| bad(format!("damaged: the header of a batch: {e}")))?;
            let body = u64::try_from(message.bodyLength()).map_err(|_| outside())?;
            let batch = match message.header_type() {
                MessageHeader::RecordBatch => message.header_as_record_batch(),
                MessageHeader::DictionaryBatch => {
                    message.header_as_dictionary_batch().and_then(|one| one.data())
                }
                _ => None,
            };
            let compression = batch.and_then(|one| one.compression());
            let codec = match compression.map(|one| one.codec()) {
                None => None,
                Some(CompressionType::LZ4_FRAME) => Some(Codec::Lz4Frame),
                Some(CompressionType::ZSTD) => Some(Codec::Zstd),
                Some(other) => {
                    return Err(bad(format!("compressed by {other:?}, which is not read")))
                }
            };
            let buffers = batch.and_then(|one| one.buffers()).map(|list| {
                let first = list.bytes().as_ptr() as usize - header.as_ptr() as usize;
                let spans: Vec<_> = list.iter().map(|one| (one.offset(), one.length())).collect();
                (first, spans)
            });
            (body, codec, buffers)
        };
        let at = place.at + place.header;
        let end = at.checked_add(body).ok_or_else(outside)?;
        self.fits(body)?;
        let stored = self.bytes(at, body)?;
        let plain = match (codec, buffers) {
            (Some(codec), Some((first, spans))) => {
                self.plain_body(codec, &stored, &mut header, first, &spans)?
            }
            _ => stored,
        };
        let mut whole = MutableBuffer::with_capacity(header.len() + plain.len());
        whole.extend_from_slice(&header);
        whole.extend_from_slice(&plain);
        Ok(Message { body_at: header.len(), header, whole: whole.into(), end })
    }

    fn fits(&self, bytes: u64) -> Result<(), Error> {
        if bytes <= self.limits.part_bytes {
            return Ok(());
        }
        let most = size_text(self.limits.part_bytes);
        Err(over(format!("a record batch of {bytes} bytes, more than {most}; write smaller ones")))
    }

    // The body with every buffer unpacked; the list of buffers in the header, at `first`, follows.
    fn plain_body(
        &self,
        codec: Codec,
        stored: &[u8],
        header: &mut [u8],
        first: usize,
        spans: &[(i64, i64)],
    ) -> Result<Vec<u8>, Error> {
        let mut plain = Vec::new();
        for (index, &(offset, length)) in spans.iter().enumerate() {
            let begin = usize::try_from(offset).map_err(|_| outside())?;
            let length = usize::try_from(length).map_err(|_| outside())?;
            let end = begin.checked_add(length).ok_or_else(outside)?;
            let bytes = stored.get(begin..end).ok_or_else(outside)?;
            plain.resize(plain.len().next_multiple_of(8), 0);
            let at = plain.len();
            if !bytes.is_empty() {
                let (size, packed) = bytes.split_first_chunk::<8>().ok_or_else(outside)?;
                let size = i64::from_le_bytes(*size);
                plain.extend_from_slice(&UNPACKED.to_le_bytes());
                if size == UNPACKED {
                    self.fits((plain.len() + packed.len()) as u64)?;
                    plain.extend_from_slice(packed);
                } else {
                    let size = u64::try_from(size).map_err(|_| outside())?;
                    self.fits(size.saturating_add(plain.len() as u64))?;
                    let from = plain.len();
                    plain.resize(from + size as usize, 0);
                    if size > 0 {
                        unpack(codec, packed, &mut plain[from..])?;
                    }
                }
            }
            let entry = header.get_mut(first + 16 * index..first + 16 * (index + 1));
            let entry = entry.ok_or_else(outside)?;
            entry[..8].copy_from_slice(&(at as i64).to_le_bytes());
            entry[8..].copy_from_slice(&((plain.len() - at) as i64).to_le_bytes());
        }
        Ok(plain)
    }
}

fn outside() -> Error {
    bad("damaged, or cut: a part lies outside the file")
}

// Bytes of the length in front of a header.
fn prefix(header: &[u8]) -> Result<usize, Error> {
    let before = if header.starts_with(&CONTINUES) { 8 } else { 4 };
    if header.len() < before {
        return Err(outside());
    }
    Ok(before)
}

impl IpcFile {
    pub fn open(file: File, is_stream: bool, limits: Limits) -> Result<IpcFile, Error> {
        let size = file.metadata().map_err(unread)?.len();
        let input = Input { file, size, limits };
        no_panic(|| if is_stream { IpcFile::stream(input) } else { IpcFile::file(input) })
    }

    fn stream(input: Input) -> Result<IpcFile, Error> {
        let place = input.place(0)?.ok_or_else(|| bad("an Arrow stream without a schema"))?;
        let message = input.message(place)?;
        let parsed = root_as_message(&message.header[prefix(&message.header)?..])
            .map_err(|e| bad(format!("damaged: {e}")))?;
        let schema = parsed
            .header_as_schema()
            .ok_or_else(|| bad("damaged: an Arrow stream must begin with its schema"))?;
        let schema = Arc::new(fb_to_schema(schema));
        check_schema(&schema, &input.limits)?;
        let decoder = FileDecoder::new(schema.clone(), parsed.version());
        let at = message.end;
        Ok(IpcFile { input, schema, decoder, places: None, dictionaries: Vec::new(), at, group: 0 })
    }

    fn file(input: Input) -> Result<IpcFile, Error> {
        let least = 2 * MARK.len() as u64 + 4;
        if input.size < least {
            return Err(bad("no Arrow file: it is too short"));
        }
        let end = input.bytes(input.size - 10, 10)?;
        if &end[4..] != MARK {
            return Err(bad("no whole Arrow file: it does not end with its mark; was it cut?"));
        }
        let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
        if length > input.size - least {
            return Err(bad("damaged: the footer is longer than the file"));
        }
        if length > input.limits.footer_bytes {
            let most = size_text(input.limits.footer_bytes);
            return Err(over(format!("a footer of {length} bytes, more than {most}")));
        }
        let footer = input.bytes(input.size - 10 - length, length)?;
        let footer = root_as_footer(&footer).map_err(|e| bad(format!("damaged: footer: {e}")))?;
        let schema = footer.schema().ok_or_else(|| bad("damaged: no schema"))?;
        let schema = Arc::new(fb_to_schema(schema));
        check_schema(&schema, &input.limits)?;
        let decoder = FileDecoder::new(schema.clone(), footer.version());
        let place = |block: &Block| -> Result<Place, Error> {
            let at = u64::try_from(block.offset()).map_err(|_| outside())?;
            let header = u64::try_from(block.metaDataLength()).map_err(|_| outside())?;
            Ok(Place { at, header })
        };
        let all = |blocks: Option<flatbuffers::Vector<'_, Block>>| {
            blocks.map_or(Ok(Vec::new()), |list| list.iter().map(place).collect())
        };
        Ok(IpcFile {
            places: Some(all(footer.recordBatches())?),
            dictionaries: all(footer.dictionaries())?,
            input,
            schema,
            decoder,
            at: 0,
            group: 0,
        })
    }

    // Takes a dictionary in, or returns a batch.
    fn take(&mut self, message: &Message) -> Result<Option<RecordBatch>, Error> {
        let parsed = root_as_message(&message.header[prefix(&message.header)?..])
            .map_err(|e| bad(format!("damaged: {e}")))?;
        let block = Block::new(
            0,
            i32::try_from(message.body_at).map_err(|_| outside())?,
            (message.whole.len() - message.body_at) as i64,
        );
        let told = |e: arrow_schema::ArrowError| bad(format!("cannot be read: {e}"));
        if parsed.header_type() == MessageHeader::DictionaryBatch {
            self.decoder.read_dictionary(&block, &message.whole).map_err(told)?;
            return Ok(None);
        }
        self.decoder.read_record_batch(&block, &message.whole).map_err(told)
    }

    fn step(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Some(places) = &self.places else { return self.step_stream() };
        let Some(&place) = places.get(self.group as usize) else { return Ok(None) };
        for one in std::mem::take(&mut self.dictionaries) {
            let message = self.input.message(one)?;
            self.take(&message)?;
        }
        let message = self.input.message(place)?;
        let batch = self.take(&message)?;
        Ok(Some(batch.ok_or_else(|| bad("damaged: a record batch without rows"))?))
    }

    fn step_stream(&mut self) -> Result<Option<RecordBatch>, Error> {
        while let Some(place) = self.input.place(self.at)? {
            let message = self.input.message(place)?;
            self.at = message.end;
            if let Some(batch) = self.take(&message)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

impl Source for IpcFile {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn facts(&self) -> Facts {
        let groups = self.places.as_ref().map(|all| all.len() as u64);
        Facts { rows: None, groups, bytes: None }
    }

    fn next(&mut self) -> Result<Option<(RecordBatch, u64)>, Error> {
        let batch = no_panic(|| self.step())?;
        Ok(batch.map(|one| {
            self.group += 1;
            (one, self.group - 1)
        }))
    }
}
