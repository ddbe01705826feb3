#include "apps/bench/push_receiver.hpp"

#include "apps/bench/push_decode.hpp"
#include "apps/cli/flags.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/weights/remote_subscriber.hpp"

namespace troupe::app {
namespace {

constexpr int kControl_fd = 3;

class Receiver {
 public:
  Receiver(const PushJob& job,
           const model::ParamStore& base,
           weights::WeightSubscriber& subscriber,
           LineChannel& channel)
      : job_(job), base_(base), subscriber_(subscriber), channel_(channel) {}

  core::Result<void> run() {
    for (;;) {
      TROUPE_TRY_ASSIGN(words, channel_.hear());
      if (words[0] == "end") return {};
      if (words[0] == "at") {
        const auto word = [&](std::size_t i) { return words[i] == "-" ? std::string() : words[i]; };
        location_ = {word(1), word(2), word(3), static_cast<std::uint32_t>(std::stoul(words[4])),
                     word(5)};
      } else if (words[0] == "transfer") {
        TROUPE_TRY(transfer(std::stoull(words[1])));
      } else if (words[0] == "decode") {
        TROUPE_TRY(decode(words[1] == "keep"));
      }
    }
  }

 private:
  // Both sides have all cores in turn.
  core::Result<void> transfer(core::Version version) {
    if (pool_ == nullptr) {
      pool_ = std::make_unique<async::CpuPool>(static_cast<int>(job_.threads),
                                               kernels::flush_denormals);
    }
    const std::int64_t asked = clock_ns();
    TROUPE_TRY_ASSIGN(intake, subscriber_.fetch(version, location_, kPushWait));
    const std::int64_t fetched = clock_ns();
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
    return channel_.say("transferred " + std::to_string(verified) + " " +
                        std::to_string(clock_ns() - verified) + " " +
                        std::to_string(fetched - asked));
  }

  core::Result<void> decode(bool keep) {
    pool_.reset();
    held_.reset();
    async::CpuPool team(static_cast<int>(job_.engine_threads), kernels::flush_denormals);
    PushDecode decode(job_, base_, subscriber_, location_, team);
    TROUPE_TRY(decode.run(channel_,
                          keep ? engine::KvAction::kKeep : engine::KvAction::kRecompute));
    if (keep) return channel_.say("times " + decode.times());
    TROUPE_TRY_ASSIGN(checked, decode.check());
    return channel_.say("checked " + checked);
  }

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::WeightSubscriber& subscriber_;
  LineChannel& channel_;
  weights::WeightLocation location_;
  std::unique_ptr<async::CpuPool> pool_;
  std::shared_ptr<const model::PackedWeights> held_;
};

}  // namespace

void run_push_receiver(const PushJob& job,
                       const model::ParamStore& base,
                       weights::WeightSubscriber& subscriber,
                       LineChannel& channel) {
  kernels::flush_denormals();
  const auto outcome = Receiver(job, base, subscriber, channel).run();
  if (!outcome) (void)channel.say("error " + outcome.error().message);
}

std::vector<std::string> receiver_words(const PushJob& job) {
  std::vector<std::string> words = {"bench",          "push",
                                    "receiver",       "--bytes",
                                    std::to_string(job.bytes),     "--threads",
                                    std::to_string(job.threads),   "--engine-threads",
                                    std::to_string(job.engine_threads), "--batch",
                                    std::to_string(job.batch),     "--slice-us",
                                    std::to_string(job.slice_us)};
  if (!job.model.empty()) {
    words.push_back("--model");
    words.push_back(job.model);
  }
  return words;
}

core::Result<void> bench_push_receiver(Words words) {
  PushJob job;
  TROUPE_TRY_ASSIGN(outcome,
                    parse_flags("troupe bench push receiver: started by troupe bench push",
                                {{"--model", &job.model, "model folder"},
                                 {"--bytes", &job.bytes, "of a random model"},
                                 {"--threads", &job.threads, "of a transfer"},
                                 {"--engine-threads", &job.engine_threads, "of the engine"},
                                 {"--batch", &job.batch, "samples at once"},
                                 {"--slice-us", &job.slice_us, "of packing between steps"}},
                                words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  LineChannel channel(kControl_fd);
  TROUPE_TRY_ASSIGN(base, base_weights(job));
  weights::RemoteWeightSubscriber subscriber(base->spec());
  run_push_receiver(job, *base, subscriber, channel);
  return {};
}

std::string location_text(const weights::WeightLocation& location) {
  const auto word = [](const std::string& text) { return text.empty() ? "-" : text; };
  return word(location.host_id) + " " + word(location.socket) + " " + word(location.tcp_host) +
         " " + std::to_string(location.tcp_port) + " " + word(location.key);
}

}  // namespace troupe::app
