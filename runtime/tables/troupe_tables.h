/* C interface of libtroupe_tables.so: rows of Parquet and Arrow files as JSON lines, and the bytes
 * of gzip and zstd streams, by Rust crates. The program opens the library at first use
 * (library.hpp); its one named symbol is `troupe_tables_entry`, a table of the functions below.
 *
 * A file or a stream belongs to one thread at a time. Text is UTF-8 without a terminator.
 *
 * Every fallible call returns a troupe_tables_status. On failure the outputs are untouched and, if
 * `error` is not NULL, *error holds a message for the user (free it with `string_free`) that begins
 * with the place in the file: ":12: ..." names row 12, ": ..." the file. A panic in such a call is
 * returned as TROUPE_TABLES_INTERNAL. */
#ifndef TROUPE_TABLES_H
#define TROUPE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this header. */
#define TROUPE_TABLES_ABI 1

typedef enum troupe_tables_status {
  TROUPE_TABLES_OK = 0,
  TROUPE_TABLES_INVALID = 1,  /* a damaged file, or a value that JSON has no place for */
  TROUPE_TABLES_LIMIT = 2,    /* one of troupe_tables_limits was exceeded; the message names it */
  TROUPE_TABLES_INTERNAL = 3, /* a bug in the library */
  TROUPE_TABLES_READ = 4      /* the operating system could not open or read the file */
} troupe_tables_status;

/* Borrowed text. `data` may be NULL when `size` is 0. */
typedef struct troupe_tables_view {
  const char* data;
  size_t size;
} troupe_tables_view;

/* Text owned by the library. */
typedef struct troupe_tables_string {
  char* data;
  size_t size;
} troupe_tables_string;

typedef enum troupe_tables_kind {
  TROUPE_TABLES_PARQUET = 0,
  TROUPE_TABLES_ARROW_FILE = 1,  /* Arrow IPC with a footer, which is also Feather, version 2 */
  TROUPE_TABLES_ARROW_STREAM = 2 /* Arrow IPC without one, as `datasets` keeps its tables */
} troupe_tables_kind;

typedef enum troupe_tables_codec { TROUPE_TABLES_GZIP = 0, TROUPE_TABLES_ZSTD = 1 } troupe_tables_codec;

typedef struct troupe_tables_limits {
  uint64_t columns;     /* leaves of a table's schema */
  uint64_t depth;       /* levels of nested types */
  uint64_t row_bytes;   /* of one row as JSON */
  uint64_t batch_bytes; /* `next` ends its batch after the row that reaches them */
  uint64_t footer_bytes;
  uint64_t page_bytes;  /* of a Parquet page, stored or unpacked */
  uint64_t page_values; /* values, with those of nested lists, of a Parquet page */
  uint64_t part_bytes;  /* of an Arrow record batch or dictionary, stored or unpacked */
} troupe_tables_limits;

typedef struct troupe_tables_file troupe_tables_file;
typedef struct troupe_tables_stream troupe_tables_stream;

/* What a file says of itself. An Arrow stream knows neither rows nor bytes before its end. */
typedef struct troupe_tables_info {
  uint64_t rows;   /* UINT64_MAX: not known */
  uint64_t groups; /* row groups or record batches; UINT64_MAX: not known */
  uint64_t bytes;  /* of all columns, unpacked; UINT64_MAX: not known */
  troupe_tables_string columns; /* JSON: [{"name": ..., "type": ...}, ...]; free it */
} troupe_tables_info;

/* Rows of one row group or record batch. */
typedef struct troupe_tables_batch {
  troupe_tables_view lines; /* one JSON object a line; valid until the next call for the file */
  uint64_t first;           /* number of the first row in the file; the file's first has 1 */
  uint64_t rows;            /* 0: the file is at its end */
  uint64_t group;           /* which row group or record batch, from 0 */
} troupe_tables_batch;

typedef struct troupe_tables_table {
  uint32_t abi; /* TROUPE_TABLES_ABI */

  troupe_tables_status (*file_open)(troupe_tables_view path,
                                    troupe_tables_kind kind,
                                    const troupe_tables_limits* limits,
                                    troupe_tables_file** out,
                                    troupe_tables_string* error);
  troupe_tables_status (*file_info)(const troupe_tables_file* file,
                                    troupe_tables_info* out,
                                    troupe_tables_string* error);
  /* The next rows. Rows before a bad one come in a batch of their own. After an error, only
   * `file_close` may follow. */
  troupe_tables_status (*file_next)(troupe_tables_file* file,
                                    troupe_tables_batch* out,
                                    troupe_tables_string* error);
  void (*file_close)(troupe_tables_file* file);

  troupe_tables_status (*stream_open)(troupe_tables_view path,
                                      troupe_tables_codec codec,
                                      troupe_tables_stream** out,
                                      troupe_tables_string* error);
  /* Writes up to `room` unpacked bytes to `into` and their number to *got; 0: the end. */
  troupe_tables_status (*stream_read)(troupe_tables_stream* stream,
                                      char* into,
                                      size_t room,
                                      size_t* got,
                                      troupe_tables_string* error);
  void (*stream_close)(troupe_tables_stream* stream);

  /* Frees a string that a call filled in and sets *string to empty. Ignores an empty one. */
  void (*string_free)(troupe_tables_string* string);
} troupe_tables_table;

#ifdef __cplusplus
}
#endif

#endif
