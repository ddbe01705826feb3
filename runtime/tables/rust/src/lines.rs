// JSON text of bounded rows, and why a value may have no place in it. One thread.
use crate::ffi::size_text;

// Why a value has no place in JSON, and in which column.
#[derive(Debug)]
pub struct Refusal {
    pub column: String,
    pub why: String,
    pub is_limit: bool,
}

pub type Outcome = Result<(), Refusal>;

pub fn refuse(why: impl Into<String>) -> Refusal {
    Refusal { column: String::new(), why: why.into(), is_limit: false }
}

impl Refusal {
    pub fn within(mut self, name: &str) -> Refusal {
        let inner = std::mem::take(&mut self.column);
        self.column = if inner.is_empty() { name.to_owned() } else { format!("{name}.{inner}") };
        self
    }
}

// JSON text of bounded rows.
pub struct Lines {
    pub text: Vec<u8>,
    begin: usize, // of the row being written
    row_max: usize,
}

impl Lines {
    pub fn new(row_max: u64) -> Lines {
        Lines { text: Vec::new(), begin: 0, row_max: row_max as usize }
    }

    pub fn clear(&mut self) {
        self.text.clear();
    }

    // Begins a row, whose size is bounded from here.
    pub fn begin_row(&mut self) {
        self.begin = self.text.len();
    }

    // Takes back what was written of the row.
    pub fn drop_row(&mut self) {
        self.text.truncate(self.begin);
    }

    pub fn check(&self, more: usize) -> Outcome {
        if self.text.len() - self.begin + more <= self.row_max {
            return Ok(());
        }
        let why = format!("a row of more than {} as JSON", size_text(self.row_max as u64));
        Err(Refusal { column: String::new(), why, is_limit: true })
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    pub fn quote(&mut self, text: &str) -> Outcome {
        self.check(text.len())?;
        self.text.push(b'"');
        let bytes = text.as_bytes();
        let mut from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.text.extend_from_slice(&bytes[from..at]);
            from = at + 1;
            match byte {
                b'"' => self.put(b"\\\""),
                b'\\' => self.put(b"\\\\"),
                b'\n' => self.put(b"\\n"),
                b'\r' => self.put(b"\\r"),
                b'\t' => self.put(b"\\t"),
                _ => {
                    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
                    let escape = [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)];
                    self.put(&escape);
                }
            }
        }
        self.text.extend_from_slice(&bytes[from..]);
        self.text.push(b'"');
        self.check(0)
    }
}
