#include "apps/bench/push_decode.hpp"

#include "apps/bench/figures.hpp"
#include "apps/bench/workload.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace troupe::app {
namespace {

constexpr std::int64_t kPrompt_tokens = 16;
constexpr int kAloneSteps = 200;
constexpr std::int32_t kCheckedTokens = 24;  // of a response, when all are checked

double p99(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * 99 / 100];
}

}  // namespace

PushDecode::PushDecode(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       weights::WeightLocation location,
                       core::TeamRunner& team)
    : job_(job),
      base_(base),
      subscriber_(subscriber),
      location_(std::move(location)),
      team_(team) {}

core::Result<void> PushDecode::run(const PushChannel& channel, engine::KvAction action) {
  engine::EngineLimits limits;
  limits.sequences_max = static_cast<std::int32_t>(job_.batch);
  limits.step_tokens_max = std::max(limits.step_tokens_max, limits.sequences_max);
  TROUPE_TRY_ASSIGN(
      engine, engine::Engine::create(packed_weights(base_, 0, team_), limits, {}, nullptr, team_));
  driver_.emplace(std::move(engine), team_);
  new_tokens_ = action == engine::KvAction::kRecompute
                    ? kCheckedTokens
                    : static_cast<std::int32_t>(base_.spec().context - kPrompt_tokens);
  bool during = false;
  for (int i = -20; i < kAloneSteps; ++i) {  // the first ones warm up
    const std::int64_t start = clock_ns();
    TROUPE_TRY_ASSIGN(plain, step(action));
    if (plain && i >= 0) alone_ns_.push_back(static_cast<double>(clock_ns() - start));
  }
  TROUPE_TRY(channel.say({{"ready", true}}));
  for (;;) {
    if (channel.waiting()) {
      TROUPE_TRY_ASSIGN(message, channel.hear());
      if (message["do"] == "stop") return {};
      during = true;  // from "begin" on: taking the snapshot is part of a push
      if (message["do"] == "version") {
        const core::Version version = message["version"];
        fetch_ = std::async(std::launch::async, [this, version] {
          return subscriber_.fetch(version, location_, kPushWait);
        });
      }
    }
    const std::int64_t start = clock_ns();
    TROUPE_TRY_ASSIGN(plain, step(action));
    const std::int64_t end = clock_ns();
    if (plain) (during ? during_ns_ : alone_ns_).push_back(static_cast<double>(end - start));
    if (!swapped_) continue;
    TROUPE_TRY(channel.say({{"swapped_ns", end}}));
    swapped_.reset();
    during = false;
  }
}

core::Result<void> PushDecode::refill() {
  for (; open_ < job_.batch; ++open_) {
    engine::GroupRequest request;
    request.id.value = next_group_++;
    request.seed = request.id.value;
    core::Rng rng(9, request.seed);
    request.prompt = random_tokens(rng, kPrompt_tokens, base_.spec().vocab);
    request.sampling.max_new_tokens = new_tokens_;
    request.sampling.ignore_eos = true;
    prompts_[request.id.value] = request.prompt;
    TROUPE_TRY(driver_->submit(std::move(request)));
  }
  return {};
}

core::Result<bool> PushDecode::step(engine::KvAction action) {
  if (fetch_.valid() && fetch_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    TROUPE_TRY_SET(intake_, fetch_.get());
  }
  TROUPE_TRY(refill());
  const engine::TurnBounds bounds{core::Duration(), std::chrono::microseconds(job_.slice_us)};
  const std::uint64_t before = driver_->engine()->counters().prefill_tokens;
  engine::EngineTurn turn = driver_->turn({.intake = intake_, .kv = action}, bounds);
  if (turn.intake_error) return core::fail(*turn.intake_error);
  if (turn.swapped) {  // which has ended the turn
    swapped_ = turn.swapped;
    intake_.reset();
    turn = driver_->turn({}, bounds);
  }
  for (engine::GroupNews& news : turn.news) {
    if (news.error) return core::fail(*news.error);
    open_ -= std::ssize(news.finished);
    for (engine::Sample& sample : news.finished)
      finished_.push_back(std::move(sample));
  }
  return turn.counters.prefill_tokens == before;
}

nlohmann::json PushDecode::times() const {
  return {{"step_ms", 1e-6 * median(alone_ns_)},
          {"step_ms_p99_alone", 1e-6 * p99(alone_ns_)},
          {"step_ms_p99_during", 1e-6 * p99(during_ns_)},
          {"steps_during", during_ns_.size()}};
}

core::Result<nlohmann::json> PushDecode::check() {
  TROUPE_TRY_ASSIGN(samples, driver_->run());
  for (engine::Sample& sample : samples)
    finished_.push_back(std::move(sample));
  std::set<core::Version> versions;
  std::size_t tokens = 0;
  for (const engine::Sample& sample : finished_) {
    versions.insert(sample.versions.begin(), sample.versions.end());
    tokens += sample.tokens.size();
  }
  model::ParamStore params = base_.same_layout();
  std::int64_t wrong = 0;
  for (const core::Version version : versions) {
    write_version(team_, base_, version, params);
    TROUPE_TRY_ASSIGN(count, differing(*packed_weights(params, version, team_)));
    wrong += count;
  }
  return nlohmann::json{
      {"checked_tokens", tokens}, {"checked_versions", versions.size()}, {"mixed_tokens", wrong}};
}

// Tokens that claim the panels' version and whose log-prob has other bits than the panels give.
core::Result<std::int64_t> PushDecode::differing(const model::PackedWeights& panels) {
  std::int64_t wrong = 0;
  for (const engine::Sample& sample : finished_) {
    if (std::find(sample.versions.begin(), sample.versions.end(), panels.version()) ==
        sample.versions.end()) {
      continue;
    }
    model::SampleGroup group;
    group.prompt = prompts_.at(sample.group.value);
    group.responses.emplace_back(sample.tokens);
    model::GroupPlan plan;
    TROUPE_TRY(model::build_group_plan({&group, 1}, panels.spec(), team_.size(), plan));
    const auto fresh = model::score_logprobs(team_, panels, plan.plan, plan.targets, 1.0f);
    for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
      if (sample.versions[i] != panels.version()) continue;
      wrong += std::memcmp(&fresh[i], &sample.logprobs[i], sizeof(float)) != 0 ? 1 : 0;
    }
  }
  return wrong;
}

}  // namespace troupe::app
