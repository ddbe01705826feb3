#include "apps/serving/key_meter.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::serving {

using dialects::ApiError;

namespace {
constexpr std::int64_t kParts = 60'000;                  // of a unit: a minute's milliseconds
constexpr std::int64_t kElapsed_ms_max = 1'000'000'000;  // of a time without requests; days
}  // namespace

MinuteBudget::MinuteBudget(std::int64_t per_minute, core::TimePoint now)
    : per_minute_(per_minute), left_(per_minute * kParts), at_(now) {}

void MinuteBudget::come_back(core::TimePoint now) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - at_);
  at_ += passed;
  const std::int64_t passed_ms = std::min<std::int64_t>(passed.count(), kElapsed_ms_max);
  left_ = std::min(per_minute_ * kParts, left_ + per_minute_ * passed_ms);
}

void MinuteBudget::charge(std::size_t units, core::TimePoint now) {
  come_back(now);
  left_ -= static_cast<std::int64_t>(units) * kParts;
}

int MinuteBudget::wait_s(core::TimePoint now) {
  if (per_minute_ == 0) return 0;
  come_back(now);
  if (left_ >= kParts) return 0;
  const std::int64_t wait_ms = (kParts - left_ + per_minute_ - 1) / per_minute_;
  return static_cast<int>(std::min<std::int64_t>((wait_ms + 999) / 1000, INT32_MAX));
}

KeyMeter::KeyMeter(const ApiKey& key,
                   RequestPlaces& places,
                   dialects::GenerationEvents& next,
                   const core::Clock& clock)
    : limits_(key.limits),
      places_(places),
      next_(next),
      clock_(clock),
      requests_(key.limits.requests_per_minute, clock.now()),
      tokens_(key.limits.tokens_per_minute, clock.now()) {
  use_.name = key.name;
}

ApiError KeyMeter::refuse(const std::string& why, int wait_s) {
  ++use_.refused;
  return {.status = 429,
          .message = "the API key '" + use_.name + "' " + why,
          .code = "rate_limit_exceeded",
          .retry_after_s = wait_s};
}

std::variant<KeyMeter::Lease, ApiError> KeyMeter::begin() {
  const core::TimePoint now = clock_.now();
  if (limits_.requests > 0 && use_.running >= limits_.requests) {
    return refuse("has " + std::to_string(limits_.requests) +
                      " requests under way, the most it may have at a time",
                  1);
  }
  if (!places_.has_room(use_.running)) {
    return refuse("has " + std::to_string(use_.running) +
                      " requests under way, which is its share of this server",
                  1);
  }
  if (const int wait = requests_.wait_s(now); wait > 0) {
    return refuse("has used its " + std::to_string(limits_.requests_per_minute) +
                      " requests a minute; the next may come in " + std::to_string(wait) + " s",
                  wait);
  }
  if (const int wait = tokens_.wait_s(now); wait > 0) {
    return refuse("has used its " + std::to_string(limits_.tokens_per_minute) +
                      " tokens a minute; the next request may come in " + std::to_string(wait) +
                      " s",
                  wait);
  }
  requests_.charge(1, now);
  ++use_.requests;
  ++use_.running;
  ++places_.taken;
  return Lease(this, [](KeyMeter* self) {
    --self->use_.running;
    --self->places_.taken;
  });
}

void KeyMeter::prompt(std::size_t tokens) {
  tokens_.charge(tokens, clock_.now());
  use_.prompt_tokens += tokens;
  next_.prompt(tokens);
}

void KeyMeter::finished(std::size_t tokens, engine::FinishReason reason, double seconds) {
  tokens_.charge(tokens, clock_.now());
  use_.generation_tokens += tokens;
  next_.finished(tokens, reason, seconds);
}

std::vector<std::unique_ptr<KeyMeter>> meters_of(const ApiKeys& keys,
                                                 RequestPlaces& places,
                                                 dialects::GenerationEvents& next,
                                                 const core::Clock& clock) {
  std::vector<std::unique_ptr<KeyMeter>> meters;
  for (const ApiKey& key : keys.list())
    meters.push_back(std::make_unique<KeyMeter>(key, places, next, clock));
  return meters;
}

}  // namespace troupe::serving
