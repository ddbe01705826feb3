#include "runtime/data/row_index.hpp"

#include "runtime/data/file_kind.hpp"
#include "runtime/data/foreign_file.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::data {

Result<void> RowIndex::begin_file(const std::string& file, std::string_view key) {
  TROUPE_TRY(check_rows_file(file, key));
  if (kind_of_file(file).rows == RowsKind::kList) {
    return fail(ErrorCode::kData, file + ": one list of objects, which is read whole",
                "make it .jsonl (`troupe data convert`), or set --data.shuffle_buffer 0");
  }
  TROUPE_TRY_ASSIGN(found, look_at(file));
  found.first = seen_;
  files_.push_back(std::move(found));
  return {};
}

void RowIndex::add(bool used) {
  if (!used) dropped_.push_back(seen_);
  ++seen_;
}

std::uint64_t RowIndex::number_of(std::uint64_t row) const {
  // dropped_[i] - i of the used rows lie before the i-th row that is left out.
  std::size_t before = 0;
  for (std::size_t end = dropped_.size(); before < end;) {
    const std::size_t middle = before + (end - before) / 2;
    if (dropped_[middle] - middle <= row) {
      before = middle + 1;
    } else {
      end = middle;
    }
  }
  return row + before;
}

RowIndex::Place RowIndex::place_of(std::uint64_t row) const {
  const std::uint64_t number = number_of(row);
  const auto behind =
      std::ranges::upper_bound(files_, number, {}, [](const File& file) { return file.first; });
  const auto file = static_cast<std::size_t>(std::distance(files_.begin(), behind)) - 1;
  return {file, number - files_[file].first};
}

Result<std::unique_ptr<RowSource>> RowIndex::open(std::size_t file,
                                                  std::string_view key,
                                                  parse::Numbers numbers) const {
  const File& known = files_[file];
  TROUPE_TRY_ASSIGN(now, look_at(known.name));
  if (now.bytes != known.bytes || now.written != known.written) {
    return fail(ErrorCode::kData, known.name + ": was changed while a run reads it",
                "a file that is streamed stays as it is until the run has ended");
  }
  return RowSource::open(known.name, key, numbers);
}

Result<RowIndex::File> RowIndex::look_at(const std::string& name) {
  File file{.name = name};
  std::error_code error;
  file.bytes = std::filesystem::file_size(name, error);
  if (!error) file.written = std::filesystem::last_write_time(name, error);
  if (!error) return file;
  return fail(ErrorCode::kNotFound, name + ": " + error.message(),
              "check the path and its permissions");
}

}  // namespace troupe::data
