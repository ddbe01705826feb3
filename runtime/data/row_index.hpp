// Which rows of a data set's files a stream uses, as one pass over the files found them: all but
// those that are left out. They are counted from 0, one file after the other; a row's number among
// all rows of its file says where to read it again. Built once, then read-only. Memory: 8 bytes for
// each row that is left out, and what the files' names take.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/row_source.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::data {

class RowIndex {
 public:
  struct Place {
    std::size_t file = 0;
    std::uint64_t number = 0;  // among the rows of the file, from 0
  };

  // Of the files of a pass. Errors: those of check_rows_file; kData (a .json file, which is read
  // whole).
  core::Result<void> begin_file(const std::string& file, std::string_view key);
  // The next row of it, which is used or left out.
  void add(bool used);

  std::uint64_t seen() const { return seen_; }                    // all rows
  std::uint64_t rows() const { return seen_ - dropped_.size(); }  // that are used
  std::uint64_t dropped() const { return dropped_.size(); }
  std::uint64_t number_of(std::uint64_t row) const;  // of a used row, among all
  Place place_of(std::uint64_t row) const;
  std::size_t files() const { return files_.size(); }

  // Opens a file again. Error kData: it is not the one that was read.
  core::Result<std::unique_ptr<RowSource>> open(std::size_t file,
                                                std::string_view key,
                                                parse::Numbers numbers) const;
  const std::string& name(std::size_t file) const { return files_[file].name; }

 private:
  struct File {
    std::string name;
    std::uint64_t first = 0;  // rows of the files before it
    std::uintmax_t bytes = 0;
    std::filesystem::file_time_type written{};
  };
  static core::Result<File> look_at(const std::string& name);

  std::vector<File> files_;
  std::vector<std::uint64_t> dropped_;  // ascending, among all rows
  std::uint64_t seen_ = 0;
};

}  // namespace troupe::data
