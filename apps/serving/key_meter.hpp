// Holds each API key to its limits, and counts what it uses. On the HTTP server's strand. Bound: a
// fixed size per key.
#pragma once

#include "apps/serving/api_key.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/sampler.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace troupe::serving {

// An allowance of `per_minute` units: a minute's worth may be used at once, and comes back evenly.
// What is known only afterwards may be charged below zero; then one waits until it is paid back.
class MinuteBudget {
 public:
  // 0: no limit.
  MinuteBudget(std::int64_t per_minute, core::TimePoint now);

  void charge(std::size_t units, core::TimePoint now);
  // Seconds until one unit is there; 0: it is.
  int wait_s(core::TimePoint now);

 private:
  void come_back(core::TimePoint now);

  const std::int64_t per_minute_;
  std::int64_t left_;   // in 1/60,000 of a unit
  core::TimePoint at_;  // when left_ was computed
};

// The places for requests at a time, of which a stream holds one until its end. Where there are
// several keys, none has more than are free, so each finds some: one key alone has half of them,
// two have a third each.
struct RequestPlaces {
  std::int64_t all = 0;
  bool shared = false;  // among several keys
  std::int64_t taken = 0;

  bool has_room(std::int64_t own) const { return !shared || own < all - taken; }
};

// What a key has used since the start of the server.
struct KeyUse {
  std::string name;
  std::uint64_t requests = 0, refused = 0;  // refused because of its limits
  std::uint64_t prompt_tokens = 0, generation_tokens = 0;
  std::int64_t running = 0;  // requests not fully answered yet
};

class KeyMeter final : public dialects::GenerationEvents {
 public:
  // `next` is told of the events, too. It, `clock` and `places` outlive the meter.
  KeyMeter(const ApiKey& key,
           RequestPlaces& places,
           dialects::GenerationEvents& next,
           const core::Clock& clock);

  // A request begins; it goes on until the lease is destroyed, which the meter must outlive. The
  // error (429) says which limit refuses it, and when to come back.
  using Lease = std::shared_ptr<void>;
  std::variant<Lease, dialects::ApiError> begin();

  void prompt(std::size_t tokens) override;
  void first_token(double seconds) override { next_.first_token(seconds); }
  void finished(std::size_t tokens, engine::FinishReason reason, double seconds) override;
  void aborted(std::size_t samples) override { next_.aborted(samples); }

  const KeyUse& use() const noexcept { return use_; }

 private:
  dialects::ApiError refuse(const std::string& why, int wait_s);

  const KeyLimits limits_;
  RequestPlaces& places_;
  dialects::GenerationEvents& next_;
  const core::Clock& clock_;
  MinuteBudget requests_, tokens_;
  KeyUse use_;
};

// The meters of all keys, by their place in ApiKeys.
std::vector<std::unique_ptr<KeyMeter>> meters_of(const ApiKeys& keys,
                                                 RequestPlaces& places,
                                                 dialects::GenerationEvents& next,
                                                 const core::Clock& clock);

}  // namespace troupe::serving
