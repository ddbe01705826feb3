// Reads a file line by line with bounded memory. The file may be written meanwhile: a last line
// without its newline is not given, but said. A line longer than the bound is skipped and counted.
// One thread.
#pragma once

#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::report {

class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& file,
                      std::size_t line_bytes_max = limits::kReportLine_bytes_max);

  bool opened() const noexcept { return file_ != nullptr; }
  // The next whole line, without its newline; it is valid until the next call.
  std::optional<std::string_view> next();

  std::uint64_t line() const noexcept { return line_; }    // number of the last line, from 1
  std::uint64_t bytes() const noexcept { return bytes_; }  // of the lines so far
  std::uint64_t too_long() const noexcept { return too_long_; }
  bool torn() const noexcept { return torn_; }      // the file ended within a line
  bool broken() const noexcept { return broken_; }  // an error of the disk ended it

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  bool fill();

  std::unique_ptr<std::FILE, Close> file_;
  std::size_t line_bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what is unread in the buffer
  std::uint64_t line_ = 0, bytes_ = 0, too_long_ = 0;
  bool torn_ = false, broken_ = false;
};

struct ObjectBounds {
  std::size_t line_bytes_max = limits::kReportLine_bytes_max;
  std::uint64_t bytes_max = UINT64_MAX;  // of the file; the rest is skipped and noted
};

// How a file of objects was read.
struct ObjectsRead {
  bool there = false;
  bool whole = false;  // every line was an object, and all were read
  std::uint64_t objects = 0;
};

// Calls `one` with each JSON object of a file that has one a line; false from it ends the reading.
// `name` is what `notes` call the file; they say which lines are damaged. A torn last line is not
// damage: a live run is writing it.
ObjectsRead read_objects(const std::filesystem::path& file,
                         const std::string& name,
                         const ObjectBounds& bounds,
                         Notes& notes,
                         const std::function<bool(nlohmann::ordered_json& object)>& one);

// A whole file, or its first `bytes_max` bytes with `cut` set; nullopt if there is none or it
// cannot be read.
struct WholeFile {
  std::string text;
  bool cut = false;
};
std::optional<WholeFile> read_whole(const std::filesystem::path& file, std::size_t bytes_max);

}  // namespace troupe::report
