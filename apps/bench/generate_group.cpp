#include "apps/bench/generate_group.hpp"

#include "apps/bench/train_job.hpp"
#include "runtime/core/rng.hpp"

#include <chrono>
#include <vector>

namespace troupe::app {
namespace {

constexpr int kPairs = 7;
constexpr std::uint64_t kFirstId = 1ull << 32;  // apart from the ids of the other figures

// Seconds from handing in until every sample has its one token.
core::Result<double> first_tokens(engine::EngineDriver& driver,
                                  std::uint64_t id,
                                  std::int32_t samples,
                                  std::int64_t prompt_tokens) {
  core::Rng rng(8, id);
  engine::GroupRequest request;
  request.id.value = id;
  request.seed = id;
  request.samples = samples;
  for (std::int64_t i = 0; i < prompt_tokens; ++i) {
    const auto vocab = static_cast<std::uint64_t>(driver.engine()->spec().vocab);
    request.prompt.push_back(static_cast<std::int32_t>(rng.next_below(vocab)));
  }
  request.sampling.max_new_tokens = 1;
  request.sampling.ignore_eos = true;
  const std::uint64_t before = driver.engine()->counters().prefill_tokens;
  const auto start = std::chrono::steady_clock::now();
  TROUPE_TRY(driver.submit(std::move(request)));
  TROUPE_TRY(driver.run());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (driver.engine()->counters().prefill_tokens - before !=
      static_cast<std::uint64_t>(prompt_tokens)) {
    return core::fail(core::ErrorCode::kInternal,
                      "troupe bench generate: a group's prompt was not computed once");
  }
  return seconds;
}

}  // namespace

core::Result<GroupFigures> time_first_tokens(engine::EngineDriver& driver,
                                             std::int32_t samples,
                                             std::int64_t prompt_tokens) {
  std::vector<double> one, all;
  std::uint64_t id = kFirstId;
  TROUPE_TRY(first_tokens(driver, id++, samples, prompt_tokens));  // not counted
  for (int i = 0; i < kPairs; ++i) {
    TROUPE_TRY_ASSIGN(alone, first_tokens(driver, id++, 1, prompt_tokens));
    TROUPE_TRY_ASSIGN(group, first_tokens(driver, id++, samples, prompt_tokens));
    one.push_back(alone);
    all.push_back(group);
  }
  return GroupFigures{median(one), median(all)};
}

}  // namespace troupe::app
