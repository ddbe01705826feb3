// Runs a stage until it has succeeded: starts its process again when that may pass, keeps its
// record, waits for room on a full disk. On the main thread.
#pragma once

#include "apps/pipeline/scope.hpp"
#include "apps/pipeline/stage_process.hpp"

#include <string>
#include <vector>

namespace troupe::pipeline {

// Whether what the stage writes is there.
bool has_output(const StageTurn& turn);

class StageRunner {
 public:
  // `silent_s`: a stage whose process takes no processor time for so long is frozen; 0: never.
  explicit StageRunner(double silent_s) : silent_s_(silent_s) {}

  // Errors: kInterrupted; that of a stage that failed for good, with its last lines on standard
  // error.
  core::Result<void> run(const std::vector<std::string>& words, StageTurn& turn) const;

 private:
  core::Result<void> finish(StageTurn& turn) const;
  core::Result<void> save(const StageTurn& turn) const;

  const double silent_s_;
};

}  // namespace troupe::pipeline
