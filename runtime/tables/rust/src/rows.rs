// Reads a table batch by batch and writes its rows as bounded batches of JSON lines. One thread.
use std::fs::File;

use arrow_array::{Array, RecordBatch};

use crate::ffi::{bad, unread, Error, Limits, Status};
use crate::ipc_file::IpcFile;
use crate::json::{table_of, BatchWriter};
use crate::lines::{Lines, Refusal};
use crate::parquet_file::ParquetFile;
use crate::source::{no_panic, Facts, Source};

const ROWS_AT_ONCE: usize = 4096;

pub struct Rows {
    source: Box<dyn Source>,
    limits: Limits,
    batch: Option<(RecordBatch, u64)>,
    at: usize,   // the next row of the batch
    number: u64, // of rows given so far
    pending: Option<Error>,
    pub lines: Lines,
}

#[derive(Clone, Copy)]
pub struct Given {
    pub first: u64,
    pub rows: u64,
    pub group: u64,
}

impl Rows {
    pub fn open(path: &str, kind: i32, limits: Limits) -> Result<Rows, Error> {
        let file = File::open(path).map_err(unread)?;
        let source: Box<dyn Source> = match kind {
            0 => Box::new(ParquetFile::open(file, limits)?),
            1 => Box::new(IpcFile::open(file, false, limits)?),
            2 => Box::new(IpcFile::open(file, true, limits)?),
            _ => return Err(bad(format!("there is no kind {kind} of table"))),
        };
        Ok(Rows {
            source,
            limits,
            batch: None,
            at: 0,
            number: 0,
            pending: None,
            lines: Lines::new(limits.row_bytes),
        })
    }

    pub fn facts(&self) -> Facts {
        self.source.facts()
    }

    // [{"name": ..., "type": ...}, ...]
    pub fn columns(&self) -> String {
        let mut out = Lines::new(u64::MAX >> 1);
        out.text.push(b'[');
        for (index, field) in self.source.schema().fields().iter().enumerate() {
            let before: &[u8] = if index == 0 { b"{\"name\":" } else { b",{\"name\":" };
            out.text.extend_from_slice(before);
            let _ = out.quote(field.name());
            out.text.extend_from_slice(b",\"type\":");
            let _ = out.quote(&field.data_type().to_string());
            out.text.push(b'}');
        }
        out.text.push(b']');
        String::from_utf8(out.text).unwrap_or_default()
    }

    pub fn next(&mut self) -> Result<Given, Error> {
        self.lines.clear();
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        let Some((batch, group)) = self.current()? else {
            return Ok(Given { first: self.number + 1, rows: 0, group: 0 });
        };
        let first = self.number + 1;
        let count = (batch.num_rows() - self.at).min(ROWS_AT_ONCE);
        let part = batch.slice(self.at, count);
        let written = no_panic(|| self.write(&part));
        let rows = (self.number + 1 - first) as usize;
        self.at += rows;
        if self.at < batch.num_rows() {
            self.batch = Some((batch, group));
        }
        match written {
            Err(error) if rows == 0 => return Err(error),
            Err(error) => self.pending = Some(error),
            Ok(()) => {}
        }
        Ok(Given { first, rows: rows as u64, group })
    }

    // The batch whose rows are given; None at the end of the table.
    fn current(&mut self) -> Result<Option<(RecordBatch, u64)>, Error> {
        if let Some(batch) = self.batch.take() {
            return Ok(Some(batch));
        }
        loop {
            self.at = 0;
            match self.source.next()? {
                Some((batch, _)) if batch.num_rows() == 0 => {}
                other => return Ok(other),
            }
        }
    }

    fn write(&mut self, part: &RecordBatch) -> Result<(), Error> {
        let table = table_of(part);
        let writer = BatchWriter::new(&table).map_err(|e| told(e, None))?;
        for row in 0..table.len() {
            writer.line(row, &mut self.lines).map_err(|e| told(e, Some(self.number + 1)))?;
            self.number += 1;
            if self.lines.text.len() as u64 >= self.limits.batch_bytes {
                break;
            }
        }
        Ok(())
    }
}

fn told(refusal: Refusal, row: Option<u64>) -> Error {
    let status = if refusal.is_limit { Status::Limit } else { Status::Invalid };
    let place = row.map_or(String::new(), |number| format!(":{number}"));
    let column = match refusal.column.as_str() {
        "" => String::new(),
        name => format!("column '{name}': "),
    };
    Error::new(status, format!("{place}: {column}{}", refusal.why))
}
