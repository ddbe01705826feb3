#include "runtime/engine/logit_changes.hpp"

#include <algorithm>
#include <limits>

namespace troupe::engine {
namespace {

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

std::int32_t id_of(std::int32_t token) {
  return token;
}
std::int32_t id_of(const LogitBias& entry) {
  return entry.token;
}
std::int32_t id_of(const TokenCount& entry) {
  return entry.token;
}

// The rest of an ascending list during a merge.
template <class T>
class Front {
 public:
  explicit Front(std::span<const T> list) : list_(list) {}
  std::int32_t token() const { return list_.empty() ? kNone : id_of(list_.front()); }
  // If `token` is the next one, removes its entry from the list and returns it; else null.
  const T* take(std::int32_t token) {
    if (this->token() != token) return nullptr;
    const T* entry = &list_.front();
    list_ = list_.subspan(1);
    return entry;
  }

 private:
  std::span<const T> list_;
};

}  // namespace

bool penalises(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

std::span<const ChangedScore> LogitChanges::find(const float* logits,
                                                 float inv_temperature,
                                                 const SamplingParams& params,
                                                 const DrawHistory& history) {
  const bool repetition = params.repetition_penalty != 1.0f;
  Front masked(history.masked);
  Front biased(std::span<const LogitBias>(params.logit_bias));
  Front prompt(repetition ? history.prompt : std::span<const std::int32_t>());
  Front response(penalises(params) ? history.response : std::span<const TokenCount>());
  changed_.clear();
  for (;;) {
    const std::int32_t token =
        std::min({masked.token(), biased.token(), prompt.token(), response.token()});
    if (token == kNone) return changed_;
    if (changed_.capacity() == 0) changed_.reserve(static_cast<std::size_t>(vocab_));
    float z = logits[token];
    if (const LogitBias* entry = biased.take(token)) z += entry->bias;
    const bool in_prompt = prompt.take(token) != nullptr;
    const TokenCount* drawn = response.take(token);
    if (repetition && (in_prompt || drawn != nullptr)) {
      z = z > 0.0f ? z / params.repetition_penalty : z * params.repetition_penalty;
    }
    if (drawn != nullptr) {
      z -= params.frequency_penalty * static_cast<float>(drawn->count);
      z -= params.presence_penalty;
    }
    const bool hidden = masked.take(token) != nullptr;
    changed_.push_back(
        {token, hidden ? -std::numeric_limits<float>::infinity() : z * inv_temperature});
  }
}

}  // namespace troupe::engine
