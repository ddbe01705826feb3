// The files that the code of rewards and environments has loaded besides its own, with their
// SHA-256: its workers report them (Scores::modules). They are kept in checkpoints and compared
// when a run goes on, as reward code is: a change is told. Used under its owner's lock. Bound:
// kModules_max.
#pragma once

#include "apps/session/roles/contents.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::session {

class LoadedModules {
 public:
  // Begins with those of a checkpoint, which `hashes` has among others.
  explicit LoadedModules(const Hashes& hashes);

  // Takes a report: a JSON object of files and hashes, "who" has loaded them ("reward score").
  // Returns a line for each file that had another hash. What is no such object is ignored.
  std::vector<std::string> take(const std::string& who, const std::string& json);
  // For the next checkpoint.
  void add_to(Hashes& hashes) const;

 private:
  static constexpr std::size_t kModules_max = 2000, kReport_bytes_max = 1u << 20;
  Hashes known_;  // by "the module FILE of WHO"
};

}  // namespace troupe::session
