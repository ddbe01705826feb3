#include "apps/bench/push_receiver.hpp"

#include "apps/bench/figures.hpp"
#include "apps/bench/workload.hpp"
#include "apps/cli/placement.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/weights/remote_subscriber.hpp"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <set>

namespace troupe::bench {
namespace {

weights::WeightLocation location_of(const nlohmann::json& message) {
  return {message.at("host_id"), message.at("socket"), message.at("tcp_host"),
          message.at("tcp_port"), message.at("key")};
}

model::ModelSpec spec_of(std::int64_t bytes) {
  const bool large = bytes >= std::int64_t{160} << 20;
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.hidden = large ? 576 : 128;
  spec.head_dim = 64;
  spec.heads = spec.hidden / spec.head_dim;
  spec.kv_heads = large ? 3 : 1;
  spec.ffn = large ? 1536 : 384;
  spec.vocab = large ? 49152 : 4096;
  spec.context = 1024;
  spec.tied = true;
  const std::int64_t layer =
      spec.hidden * spec.qkv_width() + spec.q_width() * spec.hidden + 3 * spec.hidden * spec.ffn;
  spec.layers = std::max<std::int64_t>(1, (bytes / 4 - spec.vocab * spec.hidden) / layer);
  return spec;
}

constexpr std::int64_t kPrompt_tokens = 16;
constexpr int kWarmSteps = 20;
constexpr std::int32_t kCheckedTokens = 24;  // of a response, when all are checked

double p99(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * 99 / 100];
}

// Processor time of the calling thread so far.
double thread_ms() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return 1e3 * static_cast<double>(spent.tv_sec) + 1e-6 * static_cast<double>(spent.tv_nsec);
}

// Decodes while new weights arrive: times the steps, and checks that every token was computed with
// the version that it claims. Steps run on the caller's thread; each fetch has a thread of its own,
// as in a generator.
class PushDecode {
 public:
  PushDecode(const PushJob& job,
             const model::ParamStore& base,
             weights::WeightSubscriber& subscriber,
             weights::WeightLocation location,
             core::TeamRunner& team)
      : job_(job),
        base_(base),
        subscriber_(subscriber),
        location_(std::move(location)),
        team_(team) {}

  // Sends {"ready": true}, then decodes until {"do": "stop"}. A push begins with {"do": "begin"};
  // {"do": "version", "version": V} says that V can be fetched. Its answer {"swapped_ns": T,
  // "steps": N} ends the push: T is the end of the first step on V, N the steps during pushes since
  // the last {"do": "during"}. That is answered with their 99th percentile, {"p99_ms": T}, and
  // {"do": "alone"} with that of job.alone steps without a push.
  core::Result<void> run(const PushChannel& channel, engine::KvAction action) {
    engine::EngineLimits limits;
    limits.max_num_seqs = static_cast<std::int32_t>(job_.batch);
    limits.max_num_batched_tokens = std::max(limits.max_num_batched_tokens, limits.max_num_seqs);
    TROUPE_TRY_ASSIGN(
        engine, engine::Engine::create(packed_weights(base_, 0, team_, panels_of(job_)), limits, {},
                                       nullptr, team_));
    driver_.emplace(std::move(engine), team_);
    new_tokens_ = action == engine::KvAction::kRecompute
                      ? kCheckedTokens
                      : static_cast<std::int32_t>(base_.spec().context - kPrompt_tokens);
    bool during = false;
    for (int i = 0; i < kWarmSteps; ++i)
      TROUPE_TRY(step(action));
    TROUPE_TRY_ASSIGN(first, steps_alone(action));
    alone_ns_ = std::move(first);
    TROUPE_TRY(channel.say({{"ready", true}}));
    for (;;) {
      if (channel.waiting()) {
        TROUPE_TRY_ASSIGN(message, channel.hear());
        if (message["do"] == "stop") return {};
        if (message["do"] == "alone") {
          TROUPE_TRY_ASSIGN(steps, steps_alone(action));
          TROUPE_TRY(channel.say({{"p99_ms", 1e-6 * p99(std::move(steps))}}));
          continue;
        }
        if (message["do"] == "during") {
          const std::vector<double> steps(during_ns_.begin() + mark_, during_ns_.end());
          mark_ = std::ssize(during_ns_);
          TROUPE_TRY(channel.say({{"p99_ms", 1e-6 * p99(steps)}}));
          continue;
        }
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
      TROUPE_TRY(channel.say({{"swapped_ns", end}, {"steps", std::ssize(during_ns_) - mark_}}));
      swapped_.reset();
      during = false;
    }
  }

  // The figures step_ms, step_ms_p99_alone, step_ms_p99_during and steps_during: "alone" of decode
  // steps without a push, "during" of those during one.
  nlohmann::json times() const {
    return {{"step_ms", 1e-6 * median(alone_ns_)},
            {"step_ms_p99_alone", 1e-6 * p99(alone_ns_)},
            {"step_ms_p99_during", 1e-6 * p99(during_ns_)},
            {"steps_during", during_ns_.size()}};
  }

  // Lets all samples finish and computes their log-probs again with fresh panels of each version
  // that a token claims: checked_tokens, checked_versions, mixed_tokens.
  core::Result<nlohmann::json> check() {
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
      TROUPE_TRY_ASSIGN(count, differing(*packed_weights(params, version, team_, panels_of(job_))));
      wrong += count;
    }
    return nlohmann::json{
        {"checked_tokens", tokens}, {"checked_versions", versions.size()}, {"mixed_tokens", wrong}};
  }

 private:
  // Nanoseconds of each of job.alone decode steps.
  core::Result<std::vector<double>> steps_alone(engine::KvAction action) {
    std::vector<double> steps;
    while (std::ssize(steps) < job_.alone) {
      const std::int64_t start = clock_ns();
      TROUPE_TRY_ASSIGN(plain, step(action));
      if (plain) steps.push_back(static_cast<double>(clock_ns() - start));
    }
    return steps;
  }

  core::Result<void> refill() {
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

  // One step, after a slice of packing if weights have arrived. False: the step computed prompts
  // and is not a decode step.
  core::Result<bool> step(engine::KvAction action) {
    if (fetch_.valid() && fetch_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
      TROUPE_TRY_SET(intake_, fetch_.get());
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

  // Counts the tokens that claim the panels' version but whose log-prob differs from the panels' in
  // any bit.
  core::Result<std::int64_t> differing(const model::PackedWeights& panels) {
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
      plan.plan.place(team_.memory());
      const auto fresh = model::score_logprobs(team_, panels, plan.plan, plan.targets, 1.0f);
      for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
        if (sample.versions[i] != panels.version()) continue;
        wrong += std::memcmp(&fresh[i], &sample.logprobs[i], sizeof(float)) != 0 ? 1 : 0;
      }
    }
    return wrong;
  }

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::WeightSubscriber& subscriber_;
  const weights::WeightLocation location_;
  core::TeamRunner& team_;
  std::optional<engine::EngineDriver> driver_;
  std::int32_t new_tokens_ = 0;
  std::uint64_t next_group_ = 1;
  std::int64_t open_ = 0;
  std::map<std::uint64_t, std::vector<std::int32_t>> prompts_;
  std::vector<engine::Sample> finished_;
  std::future<core::Result<std::unique_ptr<weights::WeightIntake>>> fetch_;
  std::shared_ptr<weights::WeightIntake> intake_;
  std::optional<core::Version> swapped_;  // by this step
  std::vector<double> alone_ns_, during_ns_;
  std::ptrdiff_t mark_ = 0;  // steps during pushes that were asked for
};

class Receiver {
 public:
  Receiver(const PushJob& job,
           const model::ParamStore& base,
           weights::WeightSubscriber& subscriber,
           const PushChannel& channel,
           core::TeamRunner* device)
      : job_(job), base_(base), subscriber_(subscriber), channel_(channel), device_(device) {}

  core::Result<void> run() {
    for (;;) {
      TROUPE_TRY_ASSIGN(message, channel_.hear());
      if (message["do"] == "end") return {};
      location_ = location_of(message.at("location"));
      if (message["do"] == "transfer") TROUPE_TRY(transfer(message["version"]));
      if (message["do"] == "decode") TROUPE_TRY(decode(message["kv"] == "keep"));
    }
  }

 private:
  // Sender and receiver take turns, so each may use all cores.
  core::Result<void> transfer(core::Version version) {
    if (pool_ == nullptr && device_ == nullptr) pool_ = pool_of(job_.threads);
    core::TeamRunner& team = device_ != nullptr ? *device_ : *pool_;
    TROUPE_TRY_ASSIGN(intake, subscriber_.fetch(version, location_, kPushWait));
    const std::int64_t arrived = clock_ns();
    std::vector<double> slices;
    for (bool done = false; !done;) {
      const double before = thread_ms();
      TROUPE_TRY_SET(done, intake->advance(team, std::chrono::microseconds(job_.slice_us)));
      slices.push_back(thread_ms() - before);
    }
    const std::int64_t done = clock_ns();
    held_ = intake->take();  // until the next transfer, as an engine would
    const auto is_over = [&](double ms) { return 1e3 * ms > static_cast<double>(job_.slice_us); };
    return channel_.say({{"arrived_ns", arrived},
                         {"done_ns", done},
                         {"slice_ms", p99(slices)},
                         {"slice_ms_most", *std::max_element(slices.begin(), slices.end())},
                         {"slices", slices.size()},
                         {"slices_over", std::count_if(slices.begin(), slices.end(), is_over)}});
  }

  core::Result<void> decode(bool keep) {
    pool_.reset();
    held_.reset();
    const auto pool = device_ == nullptr ? pool_of(job_.engine_threads) : nullptr;
    core::TeamRunner& team = device_ != nullptr ? *device_ : *pool;
    PushDecode decode(job_, base_, subscriber_, location_, team);
    TROUPE_TRY(decode.run(channel_, keep ? engine::KvAction::kKeep : engine::KvAction::kRecompute));
    if (keep) return channel_.say(decode.times());
    TROUPE_TRY_ASSIGN(checked, decode.check());
    return channel_.say(checked);
  }

  static std::unique_ptr<async::CpuPool> pool_of(std::int64_t threads) {
    return std::make_unique<async::CpuPool>(static_cast<int>(threads), kernels::flush_denormals);
  }

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::WeightSubscriber& subscriber_;
  const PushChannel& channel_;
  core::TeamRunner* const device_;  // null: the CPU
  weights::WeightLocation location_;
  std::unique_ptr<async::CpuPool> pool_;
  std::shared_ptr<const model::PackedWeights> held_;
};

}  // namespace

kernels::PanelDtype panels_of(const PushJob& job) {
  kernels::PanelDtype dtype = kernels::PanelDtype::kF32;
  kernels::parse_panel_dtype(job.dtype, dtype);
  return dtype;
}

core::Result<std::unique_ptr<model::ParamStore>> base_weights(const PushJob& job) {
  if (job.model.empty()) {
    auto params = std::make_unique<model::ParamStore>(spec_of(job.bytes));
    model::randomise(*params, 3, 0.05f);
    return params;
  }
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  return model::load_model(folder);
}

void write_version(core::TeamRunner& team,
                   const model::ParamStore& base,
                   core::Version version,
                   model::ParamStore& out) {
  const float factor = 1.0f + static_cast<float>(version) * 0x1p-14f;
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(base.size(), 64);
    for (std::int64_t i = begin; i < end; ++i)
      out.data()[i] = factor * base.data()[i];
  });
}

void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       const PushChannel& channel,
                       core::TeamRunner* device) {
  kernels::flush_denormals();
  const auto outcome = Receiver(job, base, subscriber, channel, device).run();
  if (!outcome) (void)channel.say({{"error", outcome.error().message}});
}

core::Result<void> bench_push_receiver() {
  const PushChannel channel{net::OwnedFd(kReceiverSocket)};
  TROUPE_TRY_ASSIGN(message, channel.hear());
  const auto job = message.get<PushJob>();
  TROUPE_TRY_ASSIGN(base, base_weights(job));
  std::unique_ptr<core::TeamRunner> device;
  if (job.device != "cpu") TROUPE_TRY_SET(device, cli::make_team({job.device, 1}));
  weights::RemoteWeightSubscriber subscriber(base->spec(), panels_of(job), weights::own_host_id(),

                                             device ? device->memory() : core::host_memory());
  run_push_receiver(job, *base, subscriber, channel, device.get());
  return {};
}

nlohmann::json location_json(const weights::WeightLocation& location) {
  return {{"host_id", location.host_id},
          {"socket", location.socket},
          {"tcp_host", location.tcp_host},
          {"tcp_port", location.tcp_port},
          {"key", location.key}};
}

}  // namespace troupe::bench
