// The lines of a file of the run folder that only grows: metrics.jsonl, ledger.log. Anybody may
// remove, cut, rename or replace the file while it is written. That is noticed before the next line
// is added, and the file is made again: from the open descriptor, which still has what was removed
// or renamed, and from the newest lines, which are kept in memory. Used by one thread at a time.
// Bound: kKeptLines_bytes_max of memory.
#pragma once

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace troupe::store {

// The update that a line (without its newline) is about; nothing for other lines.
using StepOfLine = std::function<std::optional<std::uint64_t>(std::string_view line)>;
std::optional<std::uint64_t> step_of_metrics(std::string_view line);  // not of evaluations
std::optional<std::uint64_t> step_of_record(std::string_view line);   // of ledger.log

// "update 3", "updates 3 to 5 and 9"; at most four spans, then how many more updates.
std::string updates_text(const std::set<std::uint64_t>& updates);

class KeptLines {
 public:
  // Opens the file for appending, and creates it if it does not exist.
  static core::Result<KeptLines> open(const std::filesystem::path& path, StepOfLine step_of);

  // Looks whether the file is still there as it was written. If not, makes it again and returns
  // what to tell the user, with the updates whose lines are lost. Errors: the disk's; kResources
  // when a folder has taken its place.
  core::Result<std::optional<std::string>> mend();
  // Appends whole lines, or after an error nothing. `mend` comes first.
  core::Result<void> append(std::string_view lines);
  core::Result<void> sync();  // until everything is on disk

  const std::filesystem::path& path() const { return path_; }

 private:
  KeptLines(std::filesystem::path path, StepOfLine step_of)
      : path_(std::move(path)), step_of_(std::move(step_of)) {}
  core::Result<void> reopen();
  void remember(std::string_view bytes);
  void note_first(std::string_view lines);
  std::string rest_of(std::string text) const;
  std::set<std::uint64_t> lost_from(std::string_view text) const;

  std::filesystem::path path_;
  StepOfLine step_of_;
  core::OwnedFd file_;
  std::uint64_t size_ = 0;              // bytes that the file has
  std::optional<std::uint64_t> first_;  // update of its first line
  std::deque<std::string> newest_;      // whole lines
  std::uint64_t newest_bytes_ = 0;
};

}  // namespace troupe::store
