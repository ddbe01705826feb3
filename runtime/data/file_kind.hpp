// Which format a file of rows has, by its first bytes and its name. Any thread.
#pragma once

#include "runtime/data/row_input.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::data {

enum class RowsKind { kLines, kList, kCsv, kParquet, kArrowFile, kArrowStream };

struct FileKind {
  RowsKind rows = RowsKind::kLines;
  Packing packing = Packing::kNone;
};

// The endings of names that are read, for messages.
inline constexpr std::string_view kRowEndings =
    ".jsonl, .json, .csv (plain, .gz or .zst), .parquet, .arrow or .feather";

// Whether the rows lie in a binary table.
bool is_table(RowsKind kind);

// What the name alone says; lines for an unknown ending.
FileKind kind_of_name(std::string_view name);

// What the first bytes say, else the name. Reads the file's first bytes.
FileKind kind_of_file(const std::filesystem::path& file);

// Whether the name ends as files of rows do.
bool ends_as_rows(std::string_view name);

}  // namespace troupe::data
