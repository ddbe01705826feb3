// Turns requests into groups, and appends draws to their samples: decides which values of a draw
// are stored and whether its token ends the sample. Owned by the engine, on its thread; keeps no
// state between calls.
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

  // The request must have passed check_request. Errors: those of its guide; kInvalidArgument if
  // the guide allows no token.
  core::Result<std::unique_ptr<Group>> group_of(GroupRequest request) const;
  // Appends the draw to its sample, as of weights `version`. True if it ends the sample, whose
  // `finish` then says why.
  bool write(const DrawJob& job, const Draw& draw, core::Version version) const;

 private:
  void write_score(const DrawJob& job, const Draw& draw) const;
  bool ends(const Group& group, Sample& sample) const;
  EndTokens ends_of(const Group& group) const;
  core::Result<void> add_guide(const Group& group, SampleState& sample) const;
  // Goes on to the next draw. True, and sets `finish`, if the guide ends the sample.
  bool guide_ends(const Group& group, SampleState& sample) const;

  const std::vector<std::int32_t> eos_;
  const TokenText* const text_;
};

}  // namespace troupe::engine
