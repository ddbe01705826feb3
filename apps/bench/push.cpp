// Three parts: bare transfers, pushes while the receiver's engine decodes, and a check that every token
// has the bits of the version that it claims.
#include "apps/bench/push.hpp"

#include "apps/bench/push_job.hpp"
#include "apps/bench/push_limits.hpp"
#include "apps/bench/push_receiver.hpp"
#include "apps/bench/train_job.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/weights/local_channel.hpp"
#include "runtime/weights/shared_publisher.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <thread>

namespace troupe::app {
namespace {

using core::Result;

struct PushFigures {
  double gb_per_s = 0, pack_gb_per_s = 0, publish_gb_per_s = 0;
  double step_ms = 0, alone_ms_p99 = 0, during_ms_p99 = 0, swap_ms = 0;
  std::int64_t steps_during = 0;
  std::int64_t tokens = 0, versions = 0, differing = 0;
};

// The trainer's side: master weights that change, published by the path that is measured.
class Sender {
 public:
  Sender(const PushJob& job,
         const model::ParamStore& base,
         weights::LocalWeightChannel& local,
         core::TeamRunner& team)
      : base_(base), master_(base.same_layout()), team_(team), local_(local), job_(job) {}

  Result<void> open() {
    if (job_.path == "local") return {};
    weights::PublisherOptions options;
    options.memory = job_.path == "shm";
    options.tcp = job_.path == "tcp";
    TROUPE_TRY_SET(shared_, weights::SharedWeightPublisher::create(std::move(options), team_));
    return {};
  }

  void learn(core::Version version) { write_version(team_, base_, version, master_); }

  Result<weights::WeightLocation> publish(core::Version version) {
    weights::Offer offer;
    offer.version = version;
    offer.master = &master_;
    offer.packed = [this, version] { return pack(version); };
    weights::WeightPublisher& publisher =
        shared_ ? static_cast<weights::WeightPublisher&>(*shared_) : local_;
    return publisher.publish(offer);
  }

 private:
  std::shared_ptr<const model::PackedWeights> pack(core::Version version) {
    std::swap(panels_, spare_);
    if (panels_ == nullptr || panels_.use_count() > 1) {
      panels_ = std::make_shared<model::PackedWeights>(base_.spec());
    }
    team_.run([&](core::Team member) { panels_->fill(member, master_, version); });
    return panels_;
  }

  const model::ParamStore& base_;
  model::ParamStore master_;
  core::TeamRunner& team_;
  weights::LocalWeightChannel& local_;
  const PushJob& job_;
  std::unique_ptr<weights::SharedWeightPublisher> shared_;
  std::shared_ptr<model::PackedWeights> panels_, spare_;
};

class PushBench {
 public:
  PushBench(const PushJob& job,
            const model::ParamStore& base,
            weights::LocalWeightChannel& local,
            LineChannel& channel)
      : job_(job), base_(base), local_(local), channel_(channel) {}

  Result<PushFigures> run() {
    TROUPE_TRY(transfers());
    TROUPE_TRY(decode("keep", job_.pushes));
    TROUPE_TRY(decode("recompute", job_.checked));
    TROUPE_TRY(channel_.say("end"));
    return figures_;
  }

 private:
  Result<void> transfers() {
    async::CpuPool team(static_cast<int>(job_.threads), kernels::flush_denormals);
    Sender sender(job_, base_, local_, team);
    TROUPE_TRY(sender.open());
    const double bytes = static_cast<double>(base_.size()) * sizeof(float);
    std::vector<double> whole, packing, publishing;
    for (int round = 0; round < 6; ++round) {  // three bring both buffers into being on both sides
      sender.learn(++version_);
      const std::int64_t start = clock_ns();
      TROUPE_TRY_ASSIGN(location, sender.publish(version_));
      const std::int64_t published = clock_ns();
      TROUPE_TRY(channel_.say("at " + location_text(location)));
      TROUPE_TRY(channel_.say("transfer " + std::to_string(version_)));
      TROUPE_TRY_ASSIGN(words, channel_.hear());
      if (round < 3) continue;
      whole.push_back(bytes / static_cast<double>(std::stoll(words[1]) - start));
      packing.push_back(bytes / static_cast<double>(std::stoll(words[2])));
      publishing.push_back(bytes / static_cast<double>(published - start));
    }
    figures_.gb_per_s = median(whole);
    figures_.pack_gb_per_s = median(packing);
    figures_.publish_gb_per_s = median(publishing);
    return {};
  }

  Result<void> decode(const std::string& kv, std::int64_t pushes) {
    async::CpuPool team(static_cast<int>(std::max<std::int64_t>(job_.threads - job_.engine_threads, 1)),
                        kernels::flush_denormals);
    Sender sender(job_, base_, local_, team);
    TROUPE_TRY(sender.open());
    sender.learn(++version_);
    TROUPE_TRY_ASSIGN(location, sender.publish(version_));
    TROUPE_TRY(channel_.say("at " + location_text(location)));
    TROUPE_TRY(channel_.say("decode " + kv));
    TROUPE_TRY(channel_.hear());
    std::vector<double> swaps;
    for (std::int64_t i = 0; i < pushes; ++i) {
      sender.learn(++version_);
      TROUPE_TRY(channel_.say("begin"));
      const std::int64_t start = clock_ns();
      TROUPE_TRY(sender.publish(version_));
      TROUPE_TRY(channel_.say("version " + std::to_string(version_)));
      TROUPE_TRY_ASSIGN(words, channel_.hear());
      swaps.push_back(static_cast<double>(std::stoll(words[2]) - start) * 1e-6);
    }
    TROUPE_TRY(channel_.say("stop"));
    TROUPE_TRY_ASSIGN(words, channel_.hear());
    if (words[0] == "checked") {
      figures_.tokens = std::stoll(words[1]);
      figures_.versions = std::stoll(words[2]);
      figures_.differing = std::stoll(words[3]);
      return {};
    }
    figures_.swap_ms = median(swaps);
    figures_.step_ms = std::stod(words[1]) * 1e-6;
    figures_.alone_ms_p99 = std::stod(words[2]) * 1e-6;
    figures_.during_ms_p99 = std::stod(words[3]) * 1e-6;
    figures_.steps_during = std::stoll(words[4]);
    return {};
  }

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::LocalWeightChannel& local_;
  LineChannel& channel_;
  core::Version version_ = 0;
  PushFigures figures_;
};

Result<PushFigures> measure(const PushJob& job, const model::ParamStore& base) {
  weights::LocalWeightChannel local;
  if (job.path != "local") {
    TROUPE_TRY_ASSIGN(process, PushProcess::start(receiver_words(job)));
    return PushBench(job, base, local, process.channel).run();
  }
  TROUPE_TRY_ASSIGN(ends, make_line_channel());
  LineChannel theirs = std::move(ends.second);
  const std::jthread receiver([&] { run_push_receiver(job, base, local, theirs); });
  LineChannel mine = std::move(ends.first);  // closed before the receiver is waited for
  return PushBench(job, base, local, mine).run();
}

struct Limits {
  double copy_gb_per_s = 0, loopback_gb_per_s = 0;
};

Result<Limits> limits_of(const PushJob& job, std::int64_t bytes) {
  async::CpuPool team(static_cast<int>(job.threads));
  Limits limits;
  limits.copy_gb_per_s = copy_gb_per_s(team, bytes);
  if (job.path != "tcp") return limits;
  TROUPE_TRY_ASSIGN(rate, loopback_gb_per_s(bytes));
  limits.loopback_gb_per_s = rate;
  return limits;
}

void print(const PushJob& job, std::int64_t bytes, const Limits& limits, const PushFigures& figures) {
  const double limit = job.path == "tcp" ? limits.loopback_gb_per_s : limits.copy_gb_per_s;
  const double pause = std::max(0.0, figures.during_ms_p99 - figures.step_ms);
  if (job.json) {
    const nlohmann::ordered_json line = {{"bench", "push"},
                                         {"path", job.path},
                                         {"bytes", bytes},
                                         {"processor", processor_name()},
                                         {"threads", job.threads},
                                         {"engine_threads", job.engine_threads},
                                         {"gb_per_s", figures.gb_per_s},
                                         {"share_of_limit", figures.gb_per_s / limit},
                                         {"limit_gb_per_s", limit},
                                         {"copy_gb_per_s", limits.copy_gb_per_s},
                                         {"publish_gb_per_s", figures.publish_gb_per_s},
                                         {"pack_gb_per_s", figures.pack_gb_per_s},
                                         {"pushes", job.pushes},
                                         {"slice_us", job.slice_us},
                                         {"pause_ms_p99", pause},
                                         {"step_ms", figures.step_ms},
                                         {"step_ms_p99_alone", figures.alone_ms_p99},
                                         {"step_ms_p99_during", figures.during_ms_p99},
                                         {"steps_during", figures.steps_during},
                                         {"swap_ms", figures.swap_ms},
                                         {"checked_tokens", figures.tokens},
                                         {"checked_versions", figures.versions},
                                         {"mixed_tokens", figures.differing}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%.0f MB by %s, %lld threads\n", static_cast<double>(bytes) * 1e-6, job.path.c_str(),
              static_cast<long long>(job.threads));
  std::printf("  transfer  %6.2f GB/s, %3.0f %% of the limit (%.2f); packing %.2f GB/s\n",
              figures.gb_per_s, 100 * figures.gb_per_s / limit, limit, figures.pack_gb_per_s);
  std::printf("  decoding  step %.2f ms, p99 alone %.2f, during %lld pushes %.2f: pause %.2f ms\n",
              figures.step_ms, figures.alone_ms_p99, static_cast<long long>(job.pushes),
              figures.during_ms_p99, pause);
  std::printf("  swap      %.0f ms after publishing began\n", figures.swap_ms);
  std::printf("  check     %lld tokens of %lld versions, %lld with other bits than their version\n",
              static_cast<long long>(figures.tokens), static_cast<long long>(figures.versions),
              static_cast<long long>(figures.differing));
}

}  // namespace

Result<void> bench_push(Words words) {
  if (!words.empty() && words[0] == "receiver") return bench_push_receiver(words.subspan(1));
  PushJob job;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe bench push: new weights from a trainer to an engine, medians of 3",
                  {{"--model", &job.model, "model folder; without it a random model of --bytes"},
                   {"--bytes", &job.bytes, "about, of a random model", false, 1e6, 1e12},
                   {"--path", &job.path, "shm, tcp (on loopback) or local (one process)"},
                   {"--threads", &job.threads, "of a transfer; 0 = all cores", false, 0, 1024},
                   {"--engine-threads", &job.engine_threads, "0 = all cores but one", false, 0, 1024},
                   {"--pushes", &job.pushes, "while the engine decodes", false, 1, 1e6},
                   {"--checked", &job.checked, "pushes whose tokens are computed again", false, 1, 1e4},
                   {"--batch", &job.batch, "samples at once", false, 1, 4096},
                   {"--slice-us", &job.slice_us, "of packing between two steps", false, 1, 1e6},
                   {"--json", &job.json, "one JSON line"}},
                  words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  if (job.path != "shm" && job.path != "tcp" && job.path != "local") {
    return core::fail(core::ErrorCode::kConfig, "troupe bench push: --path " + job.path +
                                                    "; there are shm, tcp and local");
  }
  if (job.threads == 0) job.threads = usable_cores();
  if (job.engine_threads == 0) job.engine_threads = std::max(usable_cores() - 1, 1);
  TROUPE_TRY_ASSIGN(base, base_weights(job));
  const std::int64_t bytes = base->size() * static_cast<std::int64_t>(sizeof(float));
  TROUPE_TRY_ASSIGN(before, limits_of(job, bytes));
  TROUPE_TRY_ASSIGN(figures, measure(job, *base));
  TROUPE_TRY_ASSIGN(after, limits_of(job, bytes));
  const Limits best{std::max(before.copy_gb_per_s, after.copy_gb_per_s),
                    std::max(before.loopback_gb_per_s, after.loopback_gb_per_s)};
  print(job, bytes, best, figures);
  if (figures.differing == 0) return {};
  return core::fail(core::ErrorCode::kNumeric,
                    "troupe bench push: " + std::to_string(figures.differing) +
                        " tokens do not have the bits of the version that they claim");
}

}  // namespace troupe::app
