// Runs one stage: this program with other words, its output appended to a log, until it ends, is
// asked to stop or freezes. Used by the main thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe::pipeline {

struct StageEnd {
  int status = 0;        // of wait(2)
  bool stopped = false;  // the user asked for it
  bool frozen = false;   // it took no processor time and was killed
  double wall_s = 0, cpu_s = 0;

  bool succeeded() const { return status == 0 && !frozen; }
  // Whether the same command may succeed later: it was killed, froze, or lacked something.
  bool may_pass() const;
  std::string how() const;  // "ended with status 2"
};

// `silent_s`: it is frozen when its own process takes no processor time for so long; 0: never.
// `tick` is called about once a second with the seconds so far. Error: kResources.
core::Result<StageEnd> run_stage(std::vector<std::string> words,
                                 const std::filesystem::path& log,
                                 double silent_s,
                                 const std::function<void(double wall_s, double cpu_s)>& tick);

}  // namespace troupe::pipeline
