#include "apps/bench/push_receiver.hpp"

#include "apps/bench/figures.hpp"
#include "apps/bench/push_decode.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/weights/remote_subscriber.hpp"

namespace troupe::app {
namespace {

weights::WeightLocation location_of(const nlohmann::json& message) {
  return {message.at("host_id"), message.at("socket"), message.at("tcp_host"),
          message.at("tcp_port"), message.at("key")};
}

class Receiver {
 public:
  Receiver(const PushJob& job,
           const model::ParamStore& base,
           weights::WeightSubscriber& subscriber,
           const PushChannel& channel)
      : job_(job), base_(base), subscriber_(subscriber), channel_(channel) {}

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
  // Both sides have all cores in turn.
  core::Result<void> transfer(core::Version version) {
    if (pool_ == nullptr) {
      pool_ = std::make_unique<async::CpuPool>(static_cast<int>(job_.threads),
                                               kernels::flush_denormals);
    }
    TROUPE_TRY_ASSIGN(intake, subscriber_.fetch(version, location_, kPushWait));
    bool done = false;
    while (!intake->verified()) {
      TROUPE_TRY_ASSIGN(packed, intake->advance(*pool_, core::Duration(0)));
      done = packed;
    }
    const std::int64_t verified = clock_ns();
    while (!done) {
      TROUPE_TRY_ASSIGN(packed, intake->advance(*pool_, kPushWait));
      done = packed;
    }
    held_ = intake->take();  // as an engine would, until the next
    return channel_.say({{"verified_ns", verified}, {"pack_ns", clock_ns() - verified}});
  }

  core::Result<void> decode(bool keep) {
    pool_.reset();
    held_.reset();
    async::CpuPool team(static_cast<int>(job_.engine_threads), kernels::flush_denormals);
    PushDecode decode(job_, base_, subscriber_, location_, team);
    TROUPE_TRY(decode.run(channel_,
                          keep ? engine::KvAction::kKeep : engine::KvAction::kRecompute));
    if (keep) return channel_.say(decode.times());
    TROUPE_TRY_ASSIGN(checked, decode.check());
    return channel_.say(checked);
  }

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::WeightSubscriber& subscriber_;
  const PushChannel& channel_;
  weights::WeightLocation location_;
  std::unique_ptr<async::CpuPool> pool_;
  std::shared_ptr<const model::PackedWeights> held_;
};

}  // namespace

void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       const PushChannel& channel) {
  kernels::flush_denormals();
  const auto outcome = Receiver(job, base, subscriber, channel).run();
  if (!outcome) (void)channel.say({{"error", outcome.error().message}});
}

core::Result<void> bench_push_receiver() {
  const PushChannel channel{net::OwnedFd(kReceiverSocket)};
  TROUPE_TRY_ASSIGN(message, channel.hear());
  const auto job = message.get<PushJob>();
  TROUPE_TRY_ASSIGN(base, base_weights(job));
  weights::RemoteWeightSubscriber subscriber(base->spec());
  run_push_receiver(job, *base, subscriber, channel);
  return {};
}

nlohmann::json location_json(const weights::WeightLocation& location) {
  return {{"host_id", location.host_id},
          {"socket", location.socket},
          {"tcp_host", location.tcp_host},
          {"tcp_port", location.tcp_port},
          {"key", location.key}};
}

}  // namespace troupe::app
