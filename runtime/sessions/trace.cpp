#include "runtime/sessions/trace.hpp"

#include "runtime/experience/row.hpp"

#include <algorithm>
#include <vector>

namespace troupe::sessions {

using Json = nlohmann::ordered_json;

namespace {

// The versions of the tokens [begin, end), as runs.
Json versions_of(const experience::Trajectory& sample, std::size_t begin, std::size_t end) {
  Json out = Json::array();
  std::size_t at = 0;
  for (const auto& run : sample.versions.runs()) {
    const std::size_t low = std::max(at, begin), high = std::min(at + run.count, end);
    if (low < high) out.push_back({run.version, high - low});
    at += run.count;
  }
  return out;
}

}  // namespace

Json training_trace(const std::string& name,
                    std::span<const std::int32_t> prompt,
                    std::span<const experience::Trajectory> samples) {
  Json turns = Json::array();
  for (const experience::Trajectory& sample : samples) {
    const experience::Row row = experience::row_of(sample);
    std::vector<std::size_t> begins;
    for (const experience::Turn& turn : sample.turns)
      begins.push_back(turn.begin);
    if (begins.empty()) begins.push_back(0);
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::size_t begin = begins[i];
      const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : sample.tokens.size();
      std::vector<std::int32_t> before(prompt.begin(), prompt.end());
      before.insert(before.end(), row.ids.begin(),
                    row.ids.begin() + static_cast<std::ptrdiff_t>(row.drawn[begin]));
      const auto part = [&](const auto& list) {
        return std::vector(list.begin() + static_cast<std::ptrdiff_t>(begin),
                           list.begin() + static_cast<std::ptrdiff_t>(end));
      };
      std::vector<int> mask(before.size() + end - begin, 0);
      std::fill(mask.begin() + static_cast<std::ptrdiff_t>(before.size()), mask.end(), 1);
      Json metadata = {{"versions", versions_of(sample, begin, end)}};
      for (const experience::TokenFact& fact : experience::kTokenFacts) {
        const std::vector<float>& list = sample.facts.*fact.list;
        if (!list.empty()) metadata[std::string(fact.name)] = part(list);
      }
      for (const experience::StepReward& step : sample.feedback_steps)
        if (step.token + 1 == end) metadata["reward"] = step.reward;
      turns.push_back({{"node_id", name + "/" + std::to_string(turns.size())},
                       {"prompt_token_ids", std::move(before)},
                       {"completion_token_ids", part(sample.tokens)},
                       {"per_token_logps", part(sample.behaviour)},
                       {"loss_mask", std::move(mask)},
                       {"metadata", std::move(metadata)}});
    }
  }
  return {{"schema_version", 1}, {"turns", std::move(turns)}};
}

}  // namespace troupe::sessions
