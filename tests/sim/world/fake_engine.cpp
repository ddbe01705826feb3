// Tokens by hash, and weights that are only a number.
#include "tests/sim/world/fake_engine.hpp"

#include "runtime/engine/step_computer.hpp"
#include "runtime/weights/limits.hpp"

#include <limits>
#include <map>

namespace troupe::sim {
namespace {

constexpr std::int32_t kEnd = 2, kFirstToken = 3, kVocab = 64;

model::ModelSpec smallest() {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 1;
  spec.hidden = 16;
  spec.heads = 2;
  spec.kv_heads = 1;
  spec.head_dim = 8;
  spec.ffn = 16;
  spec.vocab = kVocab;
  spec.context = 128;
  return spec;
}

class FakeSteps final : public engine::StepComputer {
 public:
  FakeSteps(cluster::sim::VirtualTime& time, Truth& truth, EngineFacts facts)
      : time_(time), truth_(truth), facts_(std::move(facts)) {}

  core::Result<std::span<const engine::Draw>> run(const model::PackedWeights& weights,
                                                  engine::StepPlan& step,
                                                  model::KvPool&) override {
    time_.pass(facts_.token);
    if (auto error = truth_.error(facts_.role, "step")) return core::fail(*error);
    const bool strange = truth_.error(facts_.role, "log-probs").has_value();
    draws_.clear();
    for (const engine::DrawJob& job : step.jobs()) {
      const engine::GroupRequest& request = job.group->request;
      if (auto error = truth_.poison_of(request.prompt.front() - kTokenOfRow0))
        return core::fail(*error);
      const std::size_t place = job.group->at(job.sample).out.tokens.size();
      engine::Draw draw;
      draw.token = drawn_token(request.seed, static_cast<std::size_t>(job.sample), place,
                               weights.version(), facts_.length_max);
      draw.logprob = strange ? std::numeric_limits<float>::quiet_NaN()
                             : -0.001f * static_cast<float>(mix(place, request.seed) % 1000);
      draws_.push_back(draw);
    }
    return std::span<const engine::Draw>(draws_);
  }
  void forget_places() override {}
  std::uint64_t replayed() const override { return 0; }

 private:
  cluster::sim::VirtualTime& time_;
  Truth& truth_;
  const EngineFacts facts_;
  std::vector<engine::Draw> draws_;
};

class FakePublisher final : public weights::WeightPublisher {
 public:
  FakePublisher(Truth& truth, const Process& process) : truth_(truth), process_(process) {}

 private:
  core::Result<weights::WeightLocation> take(const weights::Offer& offer) override {
    if (auto error = truth_.error("policy/0", "publish")) return core::fail(*error);
    truth_.published[process_.number()] = offer.version;
    weights::WeightLocation location;
    location.host_id = process_.host();
    location.key = std::to_string(process_.number());
    return location;
  }
  Truth& truth_;
  const Process& process_;
};

class FakeIntake final : public weights::WeightIntake {
 public:
  FakeIntake(cluster::sim::VirtualTime& time, Truth& truth, std::string role, core::Version version)
      : time_(time), truth_(truth), role_(std::move(role)), version_(version) {}
  core::Version version() const override { return version_; }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner&, core::Duration) override {
    time_.pass(std::chrono::milliseconds(1));
    if (auto error = truth_.error(role_, "pack")) return core::fail(*error);
    return --slices_ <= 0;
  }
  std::shared_ptr<const model::PackedWeights> take() override { return weights_of(version_); }

 private:
  cluster::sim::VirtualTime& time_;
  Truth& truth_;
  const std::string role_;
  const core::Version version_;
  int slices_ = 3;
};

class FakeSubscriber final : public weights::WeightSubscriber {
 public:
  FakeSubscriber(cluster::sim::VirtualTime& time,
                 Truth& truth,
                 const Process& process,
                 std::string role,
                 WeightWays ways)
      : time_(time),
        truth_(truth),
        process_(process),
        role_(std::move(role)),
        ways_(std::move(ways)) {}

  core::Result<std::unique_ptr<weights::WeightIntake>> fetch(
      core::Version at_least,
      const weights::WeightLocation& location,
      core::Duration patience) override {
    if (closed_) return core::fail(core::ErrorCode::kClosed, "closed");
    if (auto error = truth_.error(role_, "fetch")) return core::fail(*error);
    const Process* const source = ways_.process(std::stoull(location.key));
    if (source == nullptr || !source->alive()) {
      return core::fail(core::ErrorCode::kPeerLost, "nobody is at the source of the weights");
    }
    const std::string& from = source->host();
    const std::string& to = process_.host();
    const bool there = from == to || (ways_.links->open(from, to) && ways_.links->open(to, from));
    if (!there || source->frozen()) {
      time_.pass(patience);
      return core::fail(core::ErrorCode::kDeadline, "no byte of the weights came");
    }
    if (from != to) time_.pass(ways_.links->transfer(from, to, ways_.bytes));
    const core::Version newest = truth_.published[source->number()];
    if (newest < at_least) return core::fail(core::ErrorCode::kNotFound, "only older weights");
    return std::unique_ptr<weights::WeightIntake>(
        std::make_unique<FakeIntake>(time_, truth_, role_, newest));
  }
  void close() override { closed_ = true; }

 private:
  cluster::sim::VirtualTime& time_;
  Truth& truth_;
  const Process& process_;
  const std::string role_;
  const WeightWays ways_;
  bool closed_ = false;
};

}  // namespace

std::int32_t drawn_token(std::uint64_t seed,
                         std::size_t sample,
                         std::size_t place,
                         core::Version version,
                         std::uint64_t length_max) {
  const std::uint64_t own = mix(seed, static_cast<std::uint64_t>(sample));
  if (place + 1 >= 1 + own % length_max) return kEnd;
  const std::uint64_t hash = mix(mix(own, place), version);
  return kFirstToken + static_cast<std::int32_t>(hash % (kVocab - kFirstToken));
}

const model::ParamStore& no_params() {
  static const model::ParamStore params(smallest());
  return params;
}

std::shared_ptr<const model::PackedWeights> weights_of(core::Version version) {
  static std::map<core::Version, std::shared_ptr<const model::PackedWeights>> all;
  auto& weights = all[version];
  if (!weights) {
    auto packed = std::make_shared<model::PackedWeights>(no_params().spec());
    packed->fill(core::Team{}, no_params(), version);
    weights = std::move(packed);
  }
  return weights;
}

engine::EngineMaker fake_engines(cluster::sim::VirtualTime& time,
                                 Truth& truth,
                                 EngineFacts facts,
                                 const engine::TokenText& text,
                                 core::TeamRunner& team) {
  return [&time, &truth, facts = std::move(facts), &text,
          &team](std::shared_ptr<const model::PackedWeights> weights)
             -> core::Result<std::unique_ptr<engine::Engine>> {
    if (auto error = truth.error(facts.role, "make")) return core::fail(*error);
    engine::EngineLimits limits;
    limits.max_num_seqs = 32;
    limits.max_num_batched_tokens = 128;
    limits.kv_blocks = 256;
    TROUPE_TRY_ASSIGN(made,
                      engine::Engine::create(std::move(weights), limits, {kEnd}, &text, team));
    made->wrap_steps([&](auto) { return std::make_unique<FakeSteps>(time, truth, facts); });
    return made;
  };
}

std::shared_ptr<weights::WeightPublisher> fake_publisher(Truth& truth, const Process& process) {
  return std::make_shared<FakePublisher>(truth, process);
}

std::shared_ptr<weights::WeightSubscriber> fake_subscriber(cluster::sim::VirtualTime& time,
                                                           Truth& truth,
                                                           const Process& process,
                                                           std::string role,
                                                           WeightWays ways) {
  return std::make_shared<FakeSubscriber>(time, truth, process, std::move(role), std::move(ways));
}

}  // namespace troupe::sim
