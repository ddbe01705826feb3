// Checks an update's groups before anything is computed from them: every token must have its
// version, log-probs and other records. Also measures the tokens' staleness. A pure function on the
// trainer's thread.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

// Ages of the policy tokens, in optimiser steps before the update's starting version.
struct Staleness {
  double mean = 0;
  core::Version max = 0;
  bool on_policy() const { return max == 0; }
};

// What a sample must have besides its tokens, their log-probs and a score.
struct ExperienceNeeds {
  bool reference = false, teacher = false, values = false;
};

// `version` is that of the weights at the update's start. Errors, naming group and sample:
// kInvalidArgument (a list without exactly one entry per token, a newer version than `version`, no
// score, turns or forks that do not fit, needed log-probs of frozen models or values that are
// missing), kNumeric (a recorded log-prob or value that is not finite).
core::Result<Staleness> check_experience(const std::vector<experience::Group>& groups,
                                         core::Version version,
                                         const ExperienceNeeds& needs);

}  // namespace troupe::learn
