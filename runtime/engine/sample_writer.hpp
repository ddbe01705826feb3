// Turns requests into groups, and writes drawn tokens into their samples: decides what is stored of
// a draw and whether a token ends the sample. Owned by the engine, on its thread; keeps nothing
// between calls.
#pragma once

#include "runtime/engine/sampler.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/engine/stop_text.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::engine {

class SampleWriter {
 public:
  // `eos`: end tokens, ascending. `text` may be null: then no request has stop strings.
  SampleWriter(std::vector<std::int32_t> eos, const TokenText* text)
      : eos_(std::move(eos)), text_(text) {}

  // The request was checked.
  std::unique_ptr<Group> group_of(GroupRequest request) const;
  // Writes the draw into its sample; true when it ends the sample, whose `finish` then says why.
  bool write(const DrawJob& job, const Draw& draw, core::Version version) const;

 private:
  void write_score(const DrawJob& job, const Draw& draw) const;
  bool ends(const Group& group, Sample& sample) const;

  const std::vector<std::int32_t> eos_;
  const TokenText* const text_;
};

}  // namespace troupe::engine
