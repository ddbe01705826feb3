// A Parquet file, read row group by row group. One thread.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{parquet_to_arrow_field_levels, FieldLevels, ProjectionMask};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::ffi::{bad, over, size_text, unread, Error, Limits};
use crate::pages::{Failure, Group};
use crate::source::{check_schema, no_panic, Facts, Source};
use crate::thrift::check_footer;

pub struct ParquetFile {
    file: Arc<File>,
    size: u64,
    limits: Limits,
    metadata: Arc<ParquetMetaData>,
    schema: SchemaRef,
    levels: FieldLevels,
    group: usize, // that is read or comes next
    reader: Option<ParquetRecordBatchReader>,
    left: i64, // rows of the group
    failure: Failure,
}

impl ParquetFile {
    pub fn open(file: File, limits: Limits) -> Result<ParquetFile, Error> {
        let size = file.metadata().map_err(unread)?.len();
        let footer = footer_of(&file, size, &limits)?;
        check_footer(&footer, &limits)?;
        let metadata = no_panic(|| {
            ParquetMetaDataReader::decode_metadata(&footer).map_err(|e| bad(damage(&e.to_string())))
        })?;
        let leaves = metadata.file_metadata().schema_descr().num_columns() as u64;
        if leaves > limits.columns {
            return Err(over(format!("{leaves} columns, more than {}", limits.columns)));
        }
        for group in metadata.row_groups() {
            if group.num_rows() < 0 {
                return Err(bad("damaged: a row group with less than no rows"));
            }
        }
        let announced = i128::from(metadata.file_metadata().num_rows());
        let rows: i128 = metadata.row_groups().iter().map(|one| i128::from(one.num_rows())).sum();
        if announced != rows {
            return Err(bad(format!(
                "damaged: the footer announces {announced} rows, its row groups {rows}"
            )));
        }
        let metadata = Arc::new(metadata);
        let (schema, levels) = no_panic(|| {
            let with_schema =
                ArrowReaderMetadata::try_new(metadata.clone(), ArrowReaderOptions::new())
                    .map_err(|e| bad(damage(&e.to_string())))?;
            let schema = with_schema.schema().clone();
            let levels = parquet_to_arrow_field_levels(
                metadata.file_metadata().schema_descr(),
                ProjectionMask::all(),
                Some(schema.fields()),
            )
            .map_err(|e| bad(damage(&e.to_string())))?;
            Ok((schema, levels))
        })?;
        check_schema(&schema, &limits)?;
        Ok(ParquetFile {
            file: Arc::new(file),
            size,
            limits,
            metadata,
            schema,
            levels,
            group: 0,
            reader: None,
            left: 0,
            failure: Failure::default(),
        })
    }

    fn open_group(&mut self) -> Result<(), Error> {
        let (file, metadata) = (&self.file, &self.metadata);
        let group = Group::open(file, self.size, metadata, self.group, self.limits, &self.failure)?;
        let at_once = group.rows_at_once(&self.limits);
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&self.levels, &group, at_once, None)
                .map_err(|e| bad(damage(&e.to_string())))?;
        self.reader = Some(reader);
        self.left = self.metadata.row_group(self.group).num_rows();
        Ok(())
    }

    fn step(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            if self.reader.is_none() {
                if self.group >= self.metadata.num_row_groups() {
                    return Ok(None);
                }
                self.open_group()?;
            }
            match self.reader.as_mut().and_then(Iterator::next) {
                Some(Ok(batch)) => {
                    self.left -= batch.num_rows() as i64;
                    return Ok(Some(batch));
                }
                Some(Err(why)) => return Err(bad(damage(&why.to_string()))),
                None if self.left != 0 => {
                    return Err(bad(format!(
                        "damaged: row group {} has {} rows less than it announces",
                        self.group, self.left
                    )));
                }
                None => {
                    self.reader = None;
                    self.group += 1;
                }
            }
        }
    }
}

impl Source for ParquetFile {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn facts(&self) -> Facts {
        let groups = self.metadata.row_groups();
        let sum = |of: &dyn Fn(&parquet::file::metadata::RowGroupMetaData) -> i64| {
            groups.iter().map(|group| of(group).max(0) as u64).fold(0u64, u64::saturating_add)
        };
        Facts {
            rows: Some(sum(&|group| group.num_rows())),
            groups: Some(groups.len() as u64),
            bytes: Some(sum(&|group| group.total_byte_size())),
        }
    }

    fn next(&mut self) -> Result<Option<(RecordBatch, u64)>, Error> {
        let step = no_panic(|| self.step());
        // An error of the pages says more than what the crate makes of it.
        let told = self.failure.lock().unwrap_or_else(|e| e.into_inner()).take();
        match (step, told) {
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(error),
            (Ok(batch), _) => Ok(batch.map(|one| (one, self.group as u64))),
        }
    }
}

fn damage(why: &str) -> String {
    format!("cannot be read: {}", why.trim())
}

fn footer_of(file: &File, size: u64, limits: &Limits) -> Result<Vec<u8>, Error> {
    if size < 12 {
        return Err(bad("no Parquet file: it is too short"));
    }
    let mut end = [0u8; 8];
    file.read_exact_at(&mut end, size - 8).map_err(unread)?;
    match &end[4..] {
        b"PAR1" => {}
        b"PARE" => return Err(bad("an encrypted Parquet file, which is not read")),
        _ => return Err(bad("no whole Parquet file: it does not end with its mark; was it cut?")),
    }
    let length = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    if length > size - 12 {
        return Err(bad("damaged: the footer is longer than the file"));
    }
    if length > limits.footer_bytes {
        return Err(over(format!(
            "a footer of {length} bytes, more than {}",
            size_text(limits.footer_bytes)
        )));
    }
    let mut footer = vec![0u8; length as usize];
    file.read_exact_at(&mut footer, size - 8 - length).map_err(unread)?;
    Ok(footer)
}
