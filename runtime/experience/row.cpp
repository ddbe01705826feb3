#include "runtime/experience/row.hpp"

#include <algorithm>

namespace troupe::experience {
namespace {

// Bytes of a turn and of a reward in a message, besides the ids.
constexpr std::uint64_t kTurn_bytes = 32, kStep_bytes = 16;

}  // namespace

Row row_of(const Trajectory& sample) {
  Row row;
  row.ids.reserve(row_length(sample));
  row.drawn.reserve(sample.tokens.size());
  std::size_t turn = 0;
  for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
    if (turn < sample.turns.size() && sample.turns[turn].begin == t) {
      const auto& context = sample.turns[turn++].context;
      row.ids.insert(row.ids.end(), context.begin(), context.end());
    }
    row.drawn.push_back(static_cast<std::uint32_t>(row.ids.size()));
    row.ids.push_back(sample.tokens[t]);
  }
  return row;
}

bool has_context(const Trajectory& sample) {
  return std::any_of(sample.turns.begin(), sample.turns.end(),
                     [](const Turn& turn) { return !turn.context.empty(); });
}

std::size_t context_length(const Trajectory& sample) {
  std::size_t length = 0;
  for (const Turn& turn : sample.turns)
    length += turn.context.size();
  return length;
}

std::size_t row_length(const Trajectory& sample) {
  return sample.tokens.size() + context_length(sample);
}

std::uint64_t turn_bytes(const Trajectory& sample) {
  return sample.turns.size() * kTurn_bytes + context_length(sample) * sizeof(std::int32_t) +
         sample.feedback_steps.size() * kStep_bytes + sample.facts.bytes();
}

}  // namespace troupe::experience
