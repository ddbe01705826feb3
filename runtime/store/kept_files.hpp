// The files that a run keeps in its folder: the list of all (kept_files.def), and a watch over
// those that it has written. Somebody may remove, rename, cut or replace them while the run goes
// on; what was lost so is found by `look`, once, and made again where the content is known. Any
// thread. Bound: a look takes at most a 20th of the time; an entry a file.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace troupe::store {

// What happens when a file is lost while the run goes on.
enum class Care : std::uint8_t {
  kEnds,   // the run ends: its lock protects nothing any more
  kLines,  // made again, or the updates are told whose lines are lost (KeptLines)
  kMade,   // made again
  kHead,   // made again, unless it was replaced: then it is another head's (Generation)
  kAnew,   // a new one begins
  kSaved,  // told; a checkpoint is made at once, so that nothing depends on it
  kSaid,   // told
  kFree,   // nothing depends on it
};

struct KeptRow {
  std::string_view pattern;
  Care care;
  std::string_view name;  // in messages
};
std::span<const KeptRow> kept_rows();
// The row of a path relative to the run folder; nullptr for a file that no run writes.
const KeptRow* row_of(std::string_view path);

class KeptFiles {
 public:
  explicit KeptFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Replaces a file atomically, and makes its folder if it is gone. `again`: it is made again when
  // it is lost. Errors: the disk's.
  core::Result<void> put(const std::filesystem::path& file,
                         const std::string& text,
                         bool again = false);
  // The file is as it should be now. `text`: its content, from which it can be made again.
  void wrote(const std::filesystem::path& file, std::optional<std::string> text = std::nullopt);
  // The file may go, or change, from now on.
  void forget(const std::filesystem::path& file);
  // Whether a file that was written is not there any more, or not all of it.
  bool is_lost(const std::filesystem::path& file);

  struct Loss {
    std::set<std::uint64_t> steps;      // of files that have a step
    std::filesystem::path file;         // the last that was lost
    std::string how;                    // "removed", "replaced", "cut"
    std::optional<std::string> cannot;  // why it could not be made again
  };
  // What was lost since the last look, by row. A file that is lost is told once.
  std::map<const KeptRow*, Loss> look();

 private:
  struct Facts {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::optional<std::string> text;
    bool told = false, pending = false;  // pending: found lost before a look
  };
  static std::string how_lost(const std::filesystem::path& file, const Facts& known);

  const std::filesystem::path folder_;
  std::mutex mutex_;  // protects the rest
  std::map<std::filesystem::path, Facts> files_;
  std::chrono::steady_clock::time_point next_look_{};
};

// The sentence for the user about what was lost; `row` is not of kLines.
std::string told_of_loss(const KeptRow& row, const KeptFiles::Loss& loss);

}  // namespace troupe::store
