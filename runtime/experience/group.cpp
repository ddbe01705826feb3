#include "runtime/experience/group.hpp"

namespace troupe::experience {

core::Result<void> check_delivered(const Trajectory& sample) {
  const std::size_t tokens = sample.tokens.size();
  const bool raw = sample.reference.empty() && sample.teacher.empty() && sample.values.empty() &&
                   !sample.score && sample.steps.empty();
  if (!raw) return core::fail(core::ErrorCode::kData, "a sample that was scored already");
  if (tokens > 0 && sample.behaviour.size() == tokens && sample.versions.size() == tokens)
    return {};
  return core::fail(core::ErrorCode::kData,
                    "a sample of " + std::to_string(tokens) + " tokens with " +
                        std::to_string(sample.behaviour.size()) + " log-probs and " +
                        std::to_string(sample.versions.size()) + " versions");
}

}  // namespace troupe::experience
