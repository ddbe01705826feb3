// The checks of one update's records.
#include "runtime/learn/experience_check.hpp"

#include "runtime/learn/advantage.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::learn {
namespace {

using core::ErrorCode;

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

core::Result<void> check_sample(const TrainSample& sample,
                                const std::string& name,
                                core::Version version,
                                bool needs_reference,
                                bool needs_values) {
  const std::size_t count = sample.tokens.size();
  const auto wrong = [&](const char* what, std::size_t found) {
    return core::fail(ErrorCode::kInvalidArgument, name + " has " + std::to_string(found) + " " +
                                                       what + " for " + std::to_string(count) +
                                                       " tokens");
  };
  if (sample.behaviour.size() != count) return wrong("log-probs", sample.behaviour.size());
  if (sample.versions.size() != count) return wrong("versions", sample.versions.size());
  if (needs_reference && sample.reference.size() != count) {
    return wrong("reference log-probs", sample.reference.size());
  }
  if (needs_values && sample.values.size() != count) return wrong("values", sample.values.size());
  if (needs_values && !all_finite(sample.values)) {
    return core::fail(ErrorCode::kNumeric, name + " has a value that is not a finite number");
  }
  if (!all_finite(sample.behaviour) || (needs_reference && !all_finite(sample.reference))) {
    return core::fail(ErrorCode::kNumeric, name + " has a log-prob that is not a finite number");
  }
  for (const core::Version made_by : sample.versions) {
    if (made_by > version) {
      return core::fail(ErrorCode::kInvalidArgument,
                        name + " has a token of version " + std::to_string(made_by) +
                            ", but the trainer is at version " + std::to_string(version));
    }
  }
  return {};
}

}  // namespace

core::Result<Staleness> check_experience(const std::vector<TrainGroup>& groups,
                                         core::Version version,
                                         bool needs_reference,
                                         bool needs_values) {
  Staleness staleness;
  double ages = 0, tokens = 0;
  for (const TrainGroup& group : groups) {
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      const TrainSample& sample = group.samples[i];
      const std::string name =
          "sample " + std::to_string(i) + " in the group of " + ticket_name(group.ticket);
      TROUPE_TRY(check_sample(sample, name, version, needs_reference, needs_values));
      for (const core::Version made_by : sample.versions) {
        ages += static_cast<double>(version - made_by);
        staleness.max = std::max(staleness.max, version - made_by);
      }
      tokens += static_cast<double>(sample.versions.size());
    }
  }
  if (tokens > 0) staleness.mean = ages / tokens;
  return staleness;
}

}  // namespace troupe::learn
