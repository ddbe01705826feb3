// What is written to RUN/nodes/NAME.log, whoever prints it: lines made safe for terminals, so many
// bytes a second, and two files. Plain functions and a value, used by one thread.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::session {

// One line without control characters, of at most kLogLine_bytes_max characters.
std::string safe_log_line(std::string_view line);

// Appends to the file. One with kNodeLog_bytes_max bytes or more becomes NAME.log.1 first. What
// cannot be written is lost: a log must not end a run.
void append_to_log(const std::filesystem::path& file, const std::string& text);

// The lines of one process: those beyond kNodeLog_rate_max bytes a second are dropped and counted.
class BoundedLines {
 public:
  // Adds a safe line, and its end, to `text`; before it a line that says how many were dropped.
  // False: it is dropped, too.
  bool add(std::string_view safe, core::TimePoint now, std::string& text);
  // False while this second has all its bytes: a line need not be made safe to be dropped then.
  bool has_room(core::TimePoint now) const;
  void drop(std::uint64_t lines) { dropped_ += lines; }
  // The line about what was dropped, if anything was; then nothing was.
  std::string told_drops();

 private:
  core::TimePoint second_{};
  std::uint64_t bytes_ = 0;    // of this second
  std::uint64_t dropped_ = 0;  // lines since the last that was taken
};

}  // namespace troupe::session
