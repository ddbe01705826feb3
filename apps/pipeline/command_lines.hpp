// The command lines of a pipeline's stages, with what their references stand for. Pure, but for a
// look at whether configuration files exist.
#pragma once

#include "apps/pipeline/pipeline_file.hpp"
#include "apps/pipeline/scope.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::pipeline {

class CommandLines {
 public:
  // `file` outlives it.
  explicit CommandLines(const PipelineFile& file) : file_(file) {}

  // The words of the stage, whose folder this is. Errors (kConfig, kData, kNotFound): a reference
  // to nothing, a budget that is none, a file that is not there.
  core::Result<std::vector<std::string>> of(const Stage& stage,
                                            const Scope& scope,
                                            const std::filesystem::path& folder) const;

 private:
  core::Result<std::string> budget_steps(const Stage& stage, const Scope& scope) const;

  const PipelineFile& file_;
};

}  // namespace troupe::pipeline
