#include "apps/session/activity_words.hpp"

#include <utility>

namespace troupe::app {
namespace {

constexpr std::pair<std::string_view, std::string_view> kPhases[] = {
    {"generate", "generators: sampling"},   {"score", "waiting for scores"},
    {"train", "policy: training"},          {"publish", "policy: publishing its weights"},
    {"checkpoint", "writing a checkpoint"}, {"evaluate", "evaluating on held-out data"}};

std::string groups_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " group" : " groups");
}

}  // namespace

std::string activity_words(std::string_view phase) {
  for (const auto& [name, words] : kPhases) {
    if (name == phase) return std::string(words);
  }
  return std::string(phase);
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

}  // namespace troupe::app
