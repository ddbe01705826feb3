// Rows of a Parquet or Arrow file as JSON lines, in batches of bounded size, by
// libtroupe_tables.so. One owner, one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/tables/troupe_tables.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::tables {

enum class TableKind { kParquet, kArrowFile, kArrowStream };

// What a file says of itself; nothing where it cannot be known before its end.
struct TableInfo {
  std::optional<std::uint64_t> rows;
  std::optional<std::uint64_t> groups;  // row groups or record batches
  std::optional<std::uint64_t> bytes;   // of all columns, unpacked
  std::string columns_json;             // [{"name": ..., "type": ...}, ...]
};

struct TableBatch {
  std::string_view lines;   // one JSON object a line; valid until the next call
  std::uint64_t first = 0;  // number of the first row in the file; the file's first has 1
  std::uint64_t rows = 0;   // 0: the file is at its end
  std::uint64_t group = 0;  // which row group or record batch, from 0
};

class TableFile {
 public:
  // Errors begin with the file's name: kUnsupported (no library; the advice says how to make it),
  // kNotFound (the file cannot be read), kData (damaged, or a type without a place in JSON),
  // kResources (over one of the limits of `troupe doctor`).
  static core::Result<TableFile> open(const std::filesystem::path& file, TableKind kind);
  TableFile(TableFile&& other) noexcept;
  TableFile& operator=(TableFile&&) = delete;
  ~TableFile();

  core::Result<TableInfo> info() const;
  // The next rows. Errors name the row where one is at fault: "train.parquet:12: column 'x': ...".
  core::Result<TableBatch> next();

 private:
  TableFile(const troupe_tables_table& table, troupe_tables_file* raw, std::string name)
      : table_(table), raw_(raw), name_(std::move(name)) {}

  const troupe_tables_table& table_;
  troupe_tables_file* raw_;
  std::string name_;
};

enum class PackedKind { kGzip, kZstd };

// The unpacked bytes of a gzip or zstd file. One owner, one thread.
class PackedFile {
 public:
  // Errors: as those of TableFile.
  static core::Result<PackedFile> open(const std::filesystem::path& file, PackedKind kind);
  PackedFile(PackedFile&& other) noexcept;
  PackedFile& operator=(PackedFile&&) = delete;
  ~PackedFile();

  // Writes up to `room` bytes to `into` and returns their number; 0 at the end.
  core::Result<std::size_t> read(char* into, std::size_t room);

 private:
  PackedFile(const troupe_tables_table& table, troupe_tables_stream* raw, std::string name)
      : table_(table), raw_(raw), name_(std::move(name)) {}

  const troupe_tables_table& table_;
  troupe_tables_stream* raw_;
  std::string name_;
};

}  // namespace troupe::tables
