#include "apps/session/silence_watch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace troupe::session {
namespace {

constexpr double kNearlyAll = 0.99;
// Fewer answers may all be cut by chance, although their scores would differ.
constexpr std::uint64_t kAnswers_min = 256;

constexpr const char* kCutText = "all answers were cut at their length limit (response/clip_ratio)";
constexpr const char* kCutMends =
    "raise rollout.max_new_tokens, and see that the model ends its answers with one of its end "
    "tokens";

// "updates 2 to 4"
std::string updates_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? "update " + std::to_string(last)
                       : "updates " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace

std::uint64_t samples_of_update(const config::TrainConfig& config) {
  return config.method == config::kPpo ? static_cast<std::uint64_t>(config.samples_per_update())
                                       : 0;
}

SilenceWatch::SilenceWatch(std::uint64_t samples) : samples_(samples) {
  causes_[kEqual] = {true, "all groups had equal scores (policy/zero_advantage_share)",
                     "look at the reward, and at rollout.temperature and "
                     "rollout.n_samples_per_prompt"};
  causes_[kAllCut] = {true, kCutText, kCutMends};
  causes_[kCut] = {false, kCutText, kCutMends};
  if (samples > 0) {
    auto& least = causes_[kCut].streak_min;
    least = std::max(least, (kAnswers_min + samples - 1) / samples);
  }
  causes_[kUnscored] = {false, "most samples had no score (reward/missing)",
                        "the log names the causes: look at the reward, and at data.label_key", 1};
  causes_[kFlat] = {true, "all gradients were 0 (policy/grad_norm)",
                    "look at the rows' targets, at what the objective clips (policy/clipfrac) and "
                    "at what algo.correction leaves out"};
  causes_[kSkipped] = {true,
                       "all steps were skipped, since loss or gradient was not finite "
                       "(policy/skipped_steps)",
                       "lower actor.adam.lr"};
}

std::array<bool, SilenceWatch::kKinds> SilenceWatch::signs_of(const observe::MetricRow& row) const {
  const auto is = [&row](const char* name, double value) {
    const auto found = row.find(name);
    return found && *found == value;
  };
  const auto at_least = [&row](const char* name, double value) {
    const auto found = row.find(name);
    return found && *found >= value;
  };
  const bool equal = is("policy/zero_advantage_share", 1) && !row.find("kl/teacher");
  const bool flat = is("policy/grad_norm", 0);
  const bool cut = at_least("response/clip_ratio", kNearlyAll);
  std::array<bool, kKinds> signs{};
  signs[kAllCut] = cut && (equal || flat);
  signs[kCut] = cut && !signs[kAllCut];
  signs[kEqual] = equal;
  signs[kFlat] = flat && !equal;
  // Samples of replaced groups count, too.
  signs[kUnscored] =
      samples_ > 0 && at_least("reward/missing", static_cast<double>(samples_ / 2 + 1));
  signs[kSkipped] = at_least("policy/skipped_steps", 1) && !row.find("policy/grad_norm");
  return signs;
}

// Answers that are all cut are why scores are equal, or gradients 0, in the same updates.
bool SilenceWatch::is_explained(std::size_t kind) const {
  return (kind == kEqual || kind == kFlat) && causes_[kAllCut].updates == causes_[kind].updates;
}

std::vector<std::string> SilenceWatch::on_update(const observe::MetricRow& row) {
  ++updates_;
  std::vector<std::string> lines;
  const auto signs = signs_of(row);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Cause& cause = causes_[kind];
    cause.streak = signs[kind] ? cause.streak + 1 : 0;
    cause.updates += signs[kind] ? 1 : 0;
    if (cause.told || cause.streak < cause.streak_min) continue;
    cause.told = true;
    if (is_explained(kind)) continue;
    const std::string of = updates_text(row.step - cause.streak + 1, row.step);
    lines.push_back((cause.nothing ? "nothing is learned from " + of + ": " : "in " + of + " ") +
                    cause.what + "; " + cause.mends);
  }
  return lines;
}

std::vector<std::string> SilenceWatch::summary() const {
  std::vector<std::string> lines;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Cause& cause = causes_[kind];
    const bool always = cause.nothing && updates_ > 0 && cause.updates == updates_;
    if ((!cause.told && !always) || is_explained(kind)) continue;
    const std::string of =
        std::to_string(cause.updates) + " of " + std::to_string(updates_) + " updates";
    lines.push_back((cause.nothing ? "nothing was learned from " + of + ": " : "in " + of + " ") +
                    cause.what + "; " + cause.mends);
  }
  return lines;
}

void SilenceWatch::restore(const store::RunFolder& folder) {
  std::ifstream in(folder.metrics_file());
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("policy/lr")) continue;  // not an update's
    observe::MetricRow row;
    for (const auto& [name, value] : json.items()) {
      if (name == "step" && value.is_number_unsigned()) row.step = value.get<std::uint64_t>();
      if (value.is_number()) row.values.emplace_back(name, value.get<double>());
    }
    static_cast<void>(on_update(row));
  }
}

}  // namespace troupe::session
