#include "runtime/tables/table_file.hpp"

#include "runtime/tables/library.hpp"
#include "runtime/tables/limits.hpp"

#include <utility>

namespace troupe::tables {
namespace {

constexpr std::uint64_t kUnknown = UINT64_MAX;

troupe_tables_limits within() {
  return {.columns = limits::kTable_columns_max,
          .depth = limits::kTable_depth_max,
          .row_bytes = limits::kTable_row_bytes_max,
          .batch_bytes = limits::kTable_batch_bytes,
          .footer_bytes = limits::kTable_footer_bytes_max,
          .page_bytes = limits::kTable_page_bytes_max,
          .page_values = limits::kTable_page_values_max,
          .part_bytes = limits::kTable_part_bytes_max};
}

// The library's messages begin with the place inside the file.
core::Failure failure_of(troupe_tables_status status,
                         const std::string& name,
                         const TablesText& why) {
  const std::string message = name + why.str();
  switch (status) {
    case TROUPE_TABLES_LIMIT:
      return fail(ErrorCode::kResources, message, "`troupe doctor` lists the limits of a table");
    case TROUPE_TABLES_READ:
      return fail(ErrorCode::kNotFound, message, "check the path and its permissions");
    case TROUPE_TABLES_INTERNAL:
      return fail(ErrorCode::kInternal, message);
    default:
      return fail(ErrorCode::kData, message);
  }
}

troupe_tables_kind code_of(TableKind kind) {
  switch (kind) {
    case TableKind::kArrowFile:
      return TROUPE_TABLES_ARROW_FILE;
    case TableKind::kArrowStream:
      return TROUPE_TABLES_ARROW_STREAM;
    case TableKind::kParquet:
      break;
  }
  return TROUPE_TABLES_PARQUET;
}

std::optional<std::uint64_t> known(std::uint64_t value) {
  return value == kUnknown ? std::nullopt : std::optional(value);
}

// The library, or why `name` needs one that is not there.
core::Result<const troupe_tables_table*> library_for(const std::string& name) {
  auto table = library();
  if (!table) return fail(table.error().within(name + ": needs a library"));
  return table;
}

}  // namespace

core::Result<TableFile> TableFile::open(const std::filesystem::path& file, TableKind kind) {
  std::string name = file.string();
  TROUPE_TRY_ASSIGN(table, library_for(name));
  const troupe_tables_limits limits = within();
  troupe_tables_file* raw = nullptr;
  TablesText why(*table);
  const auto status = table->file_open(view_of(name), code_of(kind), &limits, &raw, why.out());
  if (status != TROUPE_TABLES_OK) return failure_of(status, name, why);
  return TableFile(*table, raw, std::move(name));
}

TableFile::TableFile(TableFile&& other) noexcept
    : table_(other.table_),
      raw_(std::exchange(other.raw_, nullptr)),
      name_(std::move(other.name_)) {}

TableFile::~TableFile() {
  table_.file_close(raw_);
}

core::Result<TableInfo> TableFile::info() const {
  troupe_tables_info raw{};
  TablesText why(table_), columns(table_);
  const auto status = table_.file_info(raw_, &raw, why.out());
  if (status != TROUPE_TABLES_OK) return failure_of(status, name_, why);
  *columns.out() = raw.columns;
  return TableInfo{known(raw.rows), known(raw.groups), known(raw.bytes), columns.str()};
}

core::Result<TableBatch> TableFile::next() {
  troupe_tables_batch raw{};
  TablesText why(table_);
  const auto status = table_.file_next(raw_, &raw, why.out());
  if (status != TROUPE_TABLES_OK) return failure_of(status, name_, why);
  return TableBatch{{raw.lines.data, raw.lines.size}, raw.first, raw.rows, raw.group};
}

core::Result<PackedFile> PackedFile::open(const std::filesystem::path& file, PackedKind kind) {
  std::string name = file.string();
  TROUPE_TRY_ASSIGN(table, library_for(name));
  troupe_tables_stream* raw = nullptr;
  TablesText why(*table);
  const auto codec = kind == PackedKind::kGzip ? TROUPE_TABLES_GZIP : TROUPE_TABLES_ZSTD;
  const auto status = table->stream_open(view_of(name), codec, &raw, why.out());
  if (status != TROUPE_TABLES_OK) return failure_of(status, name, why);
  return PackedFile(*table, raw, std::move(name));
}

PackedFile::PackedFile(PackedFile&& other) noexcept
    : table_(other.table_),
      raw_(std::exchange(other.raw_, nullptr)),
      name_(std::move(other.name_)) {}

PackedFile::~PackedFile() {
  table_.stream_close(raw_);
}

core::Result<std::size_t> PackedFile::read(char* into, std::size_t room) {
  std::size_t got = 0;
  TablesText why(table_);
  const auto status = table_.stream_read(raw_, into, room, &got, why.out());
  if (status != TROUPE_TABLES_OK) return failure_of(status, name_, why);
  return got;
}

}  // namespace troupe::tables
