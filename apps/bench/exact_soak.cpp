// The soak test of `troupe bench exact`.
#include "apps/bench/exact_engine.hpp"
#include "apps/bench/exact_sides.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/logged_process.hpp"
#include "apps/bench/workload.hpp"
#include "apps/cli/placement.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/engine/limits.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::bench {
namespace {

constexpr std::size_t kRequests = 48;
constexpr std::size_t kWaiting_max = 24;          // groups in the engine, running or waiting
constexpr std::uint64_t kEventEvery_tokens = 60;  // on average
constexpr std::uint64_t kEventsUntilStart = 40;   // by then every kind has happened several times
constexpr std::uint64_t kFirstFlood = 5;
constexpr double kGrowth_max = 1.03;
constexpr double kGrowth_max_mb = 12;  // beyond kGrowth_max: the allocator's own pages

class Soak {
 public:
  Soak(TwoWeights two, core::TeamRunner& team, std::uint64_t seed)
      : two_(std::move(two)), team_(team), rng_(seed), seed_(seed) {
    const model::ModelSpec& spec = two_.weights->spec();
    const std::int64_t context = std::min<std::int64_t>(spec.context, 192);
    limits_.context = static_cast<std::int32_t>(context);
    limits_.max_num_seqs = 24;
    limits_.max_num_batched_tokens = 96;
    limits_.kv_blocks = 56;  // about a third of what 24 samples need
    for (std::size_t i = 0; i < kRequests; ++i)
      requests_.push_back(make_request(i, context));
  }

  Result<SoakReport> run(double seconds) {
    TROUPE_TRY(learn_answers());
    TROUPE_TRY_ASSIGN(engine, engine::Engine::create(two_.weights, limits_,
                                                     two_.weights->spec().eos, nullptr, team_));
    driver_.emplace(std::move(engine), team_);
    ExactEvents events(*driver_, two_, seed_, events_);
    const Stopwatch watch;
    std::uint64_t next_event = 0, happened = 0;
    double next_look = 0;
    for (double now = 0; now < seconds; now = watch.seconds()) {
      TROUPE_TRY(fill());
      TROUPE_TRY(step());
      if (driver_->engine()->counters().decode_tokens >= next_event) {
        const bool floods = happened == kFirstFlood || rng_.next_below(64) == 0;
        TROUPE_TRY(floods ? flood() : events.next(live_));
        next_event =
            driver_->engine()->counters().decode_tokens + rng_.next_below(2 * kEventEvery_tokens);
        if (happened++ < kEventsUntilStart) pss_start_mb_ = std::max(pss_start_mb_, pss_own_mb());
      }
      if (now < next_look) continue;
      pss_max_mb_ = std::max(pss_max_mb_, pss_own_mb());
      next_look = now + seconds / 100;
    }
    while (!driver_->idle())
      TROUPE_TRY(step());
    return report(watch.seconds());
  }

 private:
  // A prompt shares a random number of its first tokens with one of three fixed sequences. Prompt
  // and response each take up to half of the context.
  engine::GroupRequest make_request(std::size_t number, std::int64_t context) {
    const auto half = static_cast<std::uint64_t>(context / 2);
    engine::GroupRequest request;
    core::Rng family(seed_, 1 + number % 3);
    const std::uint64_t length = 1 + rng_.next_below(half), shared = rng_.next_below(length + 1);
    request.prompt = random_prompt(family, static_cast<std::int64_t>(shared), rng_,
                                   static_cast<std::int64_t>(length), two_.weights->spec().vocab);
    request.samples = static_cast<std::int32_t>(1 + rng_.next_below(4));
    request.seed = core::derive_seed(seed_, number);
    request.sampling.max_new_tokens = static_cast<std::int32_t>(1 + rng_.next_below(half - 1));
    request.sampling.temperature = number % 5 == 0 ? 0.0f : 1.0f;
    request.sampling.top_p = number % 4 == 0 ? 0.9f : 1.0f;
    request.sampling.prompt_logprobs = number % 6 == 0;
    return request;
  }

  // Samples the expected answers: one group at a time, on one thread, without a prefix cache.
  Result<void> learn_answers() {
    core::SerialTeam serial;
    engine::EngineLimits limits = limits_;
    limits.enable_prefix_caching = false;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      TROUPE_TRY_ASSIGN(alone, engine::Engine::create(two_.weights, limits,
                                                      two_.weights->spec().eos, nullptr, serial));
      engine::EngineDriver driver(std::move(alone), serial);
      TROUPE_TRY(driver.submit(requests_[i]));
      TROUPE_TRY_ASSIGN(finished, driver.run());
      auto& answers = answers_.emplace_back(finished.size());
      for (engine::Sample& sample : finished)
        answers[static_cast<std::size_t>(sample.index)] = std::move(sample);
    }
    return {};
  }

  Result<void> fill() {
    while (live_.size() < kWaiting_max) {
      LiveGroup group;
      group.place = static_cast<std::size_t>(rng_.next_below(requests_.size()));
      group.request = requests_[group.place];
      group.request.id.value = ++groups_;
      group.left = group.request.samples;
      TROUPE_TRY(driver_->submit(group.request));
      live_.emplace(group.request.id.value, std::move(group));
    }
    return {};
  }

  Result<void> step() {
    TROUPE_TRY_ASSIGN(finished, driver_->step());
    for (const engine::Sample& sample : finished) {
      const auto at = live_.find(sample.group.value);
      const engine::Sample& answer =
          answers_[at->second.place][static_cast<std::size_t>(sample.index)];
      differing_ += same(answer, sample) ? 0 : 1;
      tokens_ += sample.tokens.size();
      ++samples_;
      if (--at->second.left == 0) live_.erase(at);
    }
    return {};
  }

  static bool same(const engine::Sample& a, const engine::Sample& b) {
    const auto bits = [](const std::vector<float>& x, const std::vector<float>& y) {
      return x.size() == y.size() &&
             (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    };
    return a.tokens == b.tokens && a.finish == b.finish && bits(a.logprobs, b.logprobs) &&
           bits(a.prompt_logprobs, b.prompt_logprobs);
  }

  // Submits more groups than the queue takes; the engine must refuse the rest with kOverloaded.
  // Then aborts those that it took.
  Result<void> flood() {
    ++events_["flood"];
    std::vector<core::GroupId> taken;
    for (std::uint64_t i = 0; i < 2 * engine::limits::kEngineQueue_groups_max; ++i) {
      engine::GroupRequest request = requests_[0];
      request.id.value = (1ull << 41) + i;
      const core::GroupId id = request.id;
      const auto submitted = driver_->submit(std::move(request));
      if (submitted) {
        taken.push_back(id);
      } else if (submitted.error().code == core::ErrorCode::kOverloaded) {
        ++refused_groups_;
      } else {
        return core::fail(submitted.error());
      }
    }
    std::reverse(taken.begin(), taken.end());
    for (const core::GroupId id : taken)
      driver_->abort(id);
    return {};
  }

  SoakReport report(double seconds) {
    const engine::EngineCounters counters = driver_->engine()->counters();
    const std::int64_t leaked = counters.total_blocks - counters.free_blocks;
    const double pss_end_mb = pss_own_mb();
    return {{{"soak_s", seconds},
             {"steps", counters.steps},
             {"groups", groups_},
             {"samples", samples_},
             {"tokens", tokens_},
             {"aborted_samples", counters.aborted},
             {"refused_groups", refused_groups_},
             {"preempted", counters.preempted},
             {"prefix_hit_tokens", counters.prefix_hit_tokens},
             {"evicted_blocks", counters.evicted},
             {"events", events_},
             {"differing_samples", differing_},
             {"leaked_blocks", leaked},
             {"pss_start_mb", pss_start_mb_},
             {"pss_end_mb", pss_end_mb},
             {"pss_max_mb", std::max(pss_max_mb_, pss_end_mb)}},
            verdict(leaked, pss_end_mb)};
  }

  Result<void> verdict(std::int64_t leaked_blocks, double pss_end_mb) const {
    if (differing_ > 0) {
      return core::fail(core::ErrorCode::kNumeric,
                        "soak: " + std::to_string(differing_) +
                            " samples differ from those of an engine that is left alone");
    }
    if (leaked_blocks != 0) {
      return core::fail(core::ErrorCode::kInternal, "soak: " + std::to_string(leaked_blocks) +
                                                        " KV blocks were not given back");
    }
    if (pss_end_mb > pss_start_mb_ * kGrowth_max + kGrowth_max_mb) {
      return core::fail(core::ErrorCode::kInternal, "soak: memory grew from " +
                                                        std::to_string(pss_start_mb_) + " to " +
                                                        std::to_string(pss_end_mb) + " MiB");
    }
    return {};
  }

  const TwoWeights two_;
  core::TeamRunner& team_;
  core::Rng rng_;
  const std::uint64_t seed_;
  engine::EngineLimits limits_;
  std::vector<engine::GroupRequest> requests_;
  std::vector<std::vector<engine::Sample>> answers_;  // by request
  std::optional<engine::EngineDriver> driver_;
  std::map<std::uint64_t, LiveGroup> live_;
  std::uint64_t groups_ = 0, samples_ = 0, tokens_ = 0, refused_groups_ = 0, differing_ = 0;
  std::map<std::string, std::uint64_t> events_;
  // Largest pss_own_mb() during the first kEventsUntilStart events, and of the whole test.
  double pss_start_mb_ = 0, pss_max_mb_ = 0;
};

}  // namespace

Result<SoakReport> run_soak(const std::filesystem::path& model,
                            const ExactPlace& place,
                            double seconds,
                            std::uint64_t seed) {
  TROUPE_TRY_ASSIGN(team, cli::make_team({place.device, 0}));
  TROUPE_TRY_ASSIGN(two, load_two_weights(model, place.dtype, *team));
  return Soak(std::move(two), *team, seed).run(seconds);
}

}  // namespace troupe::bench
