#include "runtime/learn/rl/experience_check.hpp"

#include "runtime/experience/episodes.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::learn {
namespace {

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

core::Result<void> check_sample(const experience::Trajectory& sample,
                                const std::string& name,
                                core::Version version,
                                const ExperienceNeeds& needs) {
  const std::size_t count = sample.tokens.size();
  const auto wrong = [&](const char* what, std::size_t found) {
    return core::fail(ErrorCode::kInvalidArgument, name + " has " + std::to_string(found) + " " +
                                                       what + " for " + std::to_string(count) +
                                                       " tokens");
  };
  if (sample.behaviour.size() != count) return wrong("log-probs", sample.behaviour.size());
  if (sample.versions.size() != count) return wrong("versions", sample.versions.size());
  if (needs.reference && sample.reference.size() != count) {
    return wrong("reference log-probs", sample.reference.size());
  }
  if (needs.teacher && sample.teacher.size() != count) {
    return wrong("log-probs of the teacher", sample.teacher.size());
  }
  if (needs.values && sample.values.size() != count) return wrong("values", sample.values.size());
  if (needs.values && !all_finite(sample.values)) {
    return core::fail(ErrorCode::kNumeric, name + " has a value that is not a finite number");
  }
  if (!all_finite(sample.behaviour) || (needs.reference && !all_finite(sample.reference)) ||
      (needs.teacher && !all_finite(sample.teacher))) {
    return core::fail(ErrorCode::kNumeric, name + " has a log-prob that is not a finite number");
  }
  if (const auto turns = experience::check_turns(sample); !turns)
    return core::fail(ErrorCode::kInvalidArgument, name + " is " + turns.error().message);
  if (!sample.score) return core::fail(ErrorCode::kInvalidArgument, name + " has no score");
  for (const experience::StepReward& step : sample.steps) {
    if (step.token < count && std::isfinite(step.reward)) continue;
    return core::fail(ErrorCode::kInvalidArgument,
                      name + " has a step reward that is at none of its tokens, or not a number");
  }
  if (count > 0 && sample.versions.newest() > version) {
    return core::fail(ErrorCode::kInvalidArgument,
                      name + " has a token of version " + std::to_string(sample.versions.newest()) +
                          ", but the trainer is at version " + std::to_string(version));
  }
  return {};
}

}  // namespace

core::Result<Staleness> check_experience(const std::vector<experience::Group>& groups,
                                         core::Version version,
                                         const ExperienceNeeds& needs) {
  Staleness staleness;
  double ages = 0, tokens = 0;
  for (const experience::Group& group : groups) {
    if (const auto good = experience::check_episodes(group.samples); !good) {
      return core::fail(
          ErrorCode::kInvalidArgument,
          "group of " + experience::name_of(group.ticket) + ": " + good.error().message);
    }
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      const experience::Trajectory& sample = group.samples[i];
      const std::string name =
          "sample " + std::to_string(i) + " in the group of " + experience::name_of(group.ticket);
      TROUPE_TRY(check_sample(sample, name, version, needs));
      for (const auto& run : sample.versions.runs()) {
        ages += static_cast<double>(version - run.version) * static_cast<double>(run.count);
        staleness.max = std::max(staleness.max, version - run.version);
      }
      tokens += static_cast<double>(sample.versions.size());
    }
  }
  if (tokens > 0) staleness.mean = ages / tokens;
  return staleness;
}

}  // namespace troupe::learn
