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

kernels::Penalties penalties_of(const SamplingParams& params) {
  return {.repetition = params.repetition_penalty,
          .frequency = params.frequency_penalty,
          .presence = params.presence_penalty};
}

std::span<const kernels::LogitChange> LogitChanges::list(const SamplingParams& params,
                                                         const DrawHistory& history) {
  using kernels::LogitChange;
  const bool repetition = params.repetition_penalty != 1.0f;
  Front masked(history.masked);
  Front biased(std::span<const LogitBias>(params.logit_bias));
  Front prompt(repetition ? history.prompt : std::span<const std::int32_t>());
  Front response(penalises(params) ? history.response : std::span<const TokenCount>());
  changes_.clear();
  for (;;) {
    const std::int32_t token =
        std::min({masked.token(), biased.token(), prompt.token(), response.token()});
    if (token == kNone) return changes_;
    if (changes_.capacity() == 0) changes_.reserve(static_cast<std::size_t>(vocab_));
    LogitChange& change = changes_.emplace_back();
    change.token = token;
    if (const LogitBias* entry = biased.take(token)) {
      change.what |= LogitChange::kBiased;
      change.bias = entry->bias;
    }
    const bool in_prompt = prompt.take(token) != nullptr;
    const TokenCount* drawn = response.take(token);
    if (repetition && (in_prompt || drawn != nullptr)) change.what |= LogitChange::kRepeated;
    if (drawn != nullptr) {
      change.what |= LogitChange::kDrawn;
      change.count = drawn->count;
    }
    if (masked.take(token) != nullptr) change.what |= LogitChange::kMasked;
  }
}

std::span<const ChangedScore> LogitChanges::find(const float* logits,
                                                 float inv_temperature,
                                                 const SamplingParams& params,
                                                 const DrawHistory& history) {
  const kernels::Penalties penalties = penalties_of(params);
  changed_.clear();
  for (const kernels::LogitChange& change : list(params, history)) {
    if (changed_.capacity() == 0) changed_.reserve(static_cast<std::size_t>(vocab_));
    const float z = kernels::changed_logit(logits[change.token], change, penalties);
    changed_.push_back({change.token, z * inv_temperature});
  }
  return changed_;
}

}  // namespace troupe::engine
