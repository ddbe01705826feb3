#include "apps/session/activity_words.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::session {
namespace {

struct Phase {
  std::string_view phase;
  std::string_view doing;  // while it goes on
  std::string_view name;   // in a table
};
constexpr Phase kPhases[] = {{"generate", "generators: sampling", "waiting for samples"},
                             {"score", "waiting for scores", "waiting for scores"},
                             {"train", "policy: training", "training"},
                             {"publish", "policy: publishing its weights", "publishing weights"},
                             {"checkpoint", "writing a checkpoint", "checkpoints"},
                             {"evaluate", "evaluating on held-out data", "evaluation"}};

const Phase* find_phase(std::string_view phase) {
  const auto found = std::ranges::find(kPhases, phase, &Phase::phase);
  return found == std::end(kPhases) ? nullptr : found;
}

std::string groups_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " group" : " groups");
}

}  // namespace

std::string activity_words(std::string_view phase) {
  const Phase* known = find_phase(phase);
  return std::string(known == nullptr ? phase : known->doing);
}

std::string phase_name(std::string_view phase) {
  const Phase* known = find_phase(phase);
  return std::string(known == nullptr ? phase : known->name);
}

std::string_view awaited_phase(const actors::GroupCounts& counts) {
  return counts.sampled < counts.groups ? "generate" : "score";
}

std::string activity_words(const actors::GroupCounts& counts) {
  const std::uint64_t sampling = counts.groups - counts.sampled;
  const std::uint64_t unscored = counts.sampled - counts.scored;
  if (sampling == 0 && unscored == 0) return "all " + groups_text(counts.groups) + " are there";
  if (sampling == 0) return "waiting for scores of " + groups_text(unscored);
  std::string text =
      "generators: sampling " + std::to_string(sampling) + " of " + groups_text(counts.groups);
  if (unscored > 0) {
    text += "; " + std::to_string(unscored) + (unscored == 1 ? " waits" : " wait") + " for scores";
  }
  return text;
}

}  // namespace troupe::session
