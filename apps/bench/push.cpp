// `troupe bench push`: measures the transfer of new weights from this process to an engine in
// another, against the machine's limit. Three parts: bare transfers, pushes while that engine
// decodes, and a check that every token has the bits of the version that it claims. docs/weights.md
// and docs/performance.md say what the figures mean.
#include "apps/bench/bench.hpp"
#include "apps/bench/copy_limits.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/push_receiver.hpp"
#include "apps/cli/device_speeds.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "apps/cli/system_facts.hpp"
#include "kernels/cuda/device_team.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/weights/local_channel.hpp"
#include "runtime/weights/shared_publisher.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

namespace troupe::bench {
namespace {

using nlohmann::json;

// What travels of one version.
std::uint64_t image_bytes(const PushJob& job, const model::ParamStore& base) {
  return weights::SnapshotShape(base.spec(), panels_of(job)).image_bytes;
}

// The trainer's side: changes the master weights and publishes them by the path job.path.
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
    options.memory = job_.path == "shm" || job_.path == "device";
    options.tcp = job_.path == "tcp";
    options.image = panels_of(job_);
    TROUPE_TRY_SET(shared_, weights::SharedWeightPublisher::create(std::move(options), team_));
    return {};
  }

  // The weights of a version, in the team's memory, and the panels with which a trainer would take
  // its next step.
  void learn(core::Version version) {
    write_version(team_, base_, version, master_);
    if (!team_.memory().on_host()) on_device_.emplace(master_.to(team_.memory()));
    if (job_.path != "local") pack(version);
  }

  Result<weights::WeightLocation> publish(core::Version version) {
    weights::Offer offer;
    offer.version = version;
    offer.master = &now();
    offer.packed = [this, version] {
      const bool packed = panels_ != nullptr && panels_->version() == version;
      return packed ? panels_ : pack(version);
    };
    weights::WeightPublisher& publisher =
        shared_ ? static_cast<weights::WeightPublisher&>(*shared_) : local_;
    return publisher.publish(offer);
  }

  // How many transfers stayed on the GPU.
  std::uint64_t served_on_device() const {
    return shared_ ? shared_->counters().server.served_on_device : 0;
  }

 private:
  std::shared_ptr<const model::PackedWeights> pack(core::Version version) {
    std::swap(panels_, spare_);
    if (panels_ == nullptr || panels_.use_count() > 1) {
      panels_ =
          std::make_shared<model::PackedWeights>(base_.spec(), panels_of(job_), team_.memory());
    }
    team_.run([&](core::Team member) { panels_->fill(member, now(), version); });
    return panels_;
  }
  const model::ParamStore& now() const { return on_device_ ? *on_device_ : master_; }

  const model::ParamStore& base_;
  model::ParamStore master_;  // on the host
  std::optional<model::ParamStore> on_device_;
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
            const PushChannel& channel)
      : job_(job), base_(base), local_(local), channel_(channel) {}

  // Runs all three parts; returns their figures by printed name.
  Result<json> run() {
    TROUPE_TRY_ASSIGN(figures, transfers());
    TROUPE_TRY_ASSIGN(decoded, decode("keep", job_.pushes));
    TROUPE_TRY_ASSIGN(checked, decode("recompute", job_.checked));
    if (job_.runs > 0) {
      TROUPE_TRY_ASSIGN(compared, alternate());
      figures.update(compared);
    }
    TROUPE_TRY(channel_.say({{"do", "end"}}));
    figures.update(checked);
    figures.update(decoded);  // last, so that its swap_ms is the one that stays
    return figures;
  }

 private:
  Result<json> transfers() {
    TROUPE_TRY_ASSIGN(team, cli::make_team({job_.device, job_.threads}));
    Sender sender(job_, base_, local_, *team);
    TROUPE_TRY(sender.open());
    const auto bytes = static_cast<double>(image_bytes(job_, base_));
    std::vector<double> whole, packing, publishing, slices, slices_most;
    std::int64_t slices_all = 0, slices_over = 0;
    for (int round = 0; round < 6; ++round) {  // the first three allocate the buffers
      sender.learn(++version_);
      const std::int64_t start = clock_ns();
      TROUPE_TRY_ASSIGN(location, sender.publish(version_));
      const std::int64_t published = clock_ns();
      TROUPE_TRY(channel_.say(
          {{"do", "transfer"}, {"version", version_}, {"location", location_json(location)}}));
      TROUPE_TRY_ASSIGN(answer, channel_.hear());
      if (round < 3) continue;
      const double arrived = answer["arrived_ns"], done = answer["done_ns"];
      whole.push_back(bytes / (done - static_cast<double>(start)));
      packing.push_back(bytes / (done - arrived));
      slices.push_back(answer["slice_ms"]);
      slices_most.push_back(answer["slice_ms_most"]);
      slices_all += answer["slices"].get<std::int64_t>();
      slices_over += answer["slices_over"].get<std::int64_t>();
      publishing.push_back(bytes / static_cast<double>(published - start));
    }
    return json{{"gb_per_s", median(whole)},
                {"pack_gb_per_s", median(packing)},
                {"publish_gb_per_s", median(publishing)},
                {"slice_ms_p99", median(slices)},
                {"slice_ms_most", *std::max_element(slices_most.begin(), slices_most.end())},
                {"slices", slices_all},
                {"slices_over", slices_over},
                {"served_on_device", sender.served_on_device()}};
  }

  // A publisher with a first version, and a receiver that decodes with it.
  Result<void> begin_decoding(Sender& sender, const std::string& kv) {
    TROUPE_TRY(sender.open());
    sender.learn(++version_);
    TROUPE_TRY_ASSIGN(location, sender.publish(version_));
    TROUPE_TRY(channel_.say({{"do", "decode"}, {"kv", kv}, {"location", location_json(location)}}));
    TROUPE_TRY(channel_.hear());
    return {};
  }

  // One push. Returns the receiver's answer, with swap_ms added.
  Result<json> push(Sender& sender) {
    sender.learn(++version_);
    TROUPE_TRY(channel_.say({{"do", "begin"}}));
    const std::int64_t start = clock_ns();
    TROUPE_TRY(sender.publish(version_));
    TROUPE_TRY(channel_.say({{"do", "version"}, {"version", version_}}));
    TROUPE_TRY_ASSIGN(answer, channel_.hear());
    const std::int64_t swapped = answer["swapped_ns"];
    answer["swap_ms"] = static_cast<double>(swapped - start) * 1e-6;
    return answer;
  }

  // The 99th percentile of about job.alone steps without pushes and of as many during pushes, in
  // runs that begin with the one and the other in turn.
  Result<json> alternate() {
    TROUPE_TRY_ASSIGN(team, cli::make_team({job_.device, sender_threads()}));
    Sender sender(job_, base_, local_, *team);
    TROUPE_TRY(begin_decoding(sender, "keep"));
    std::vector<double> without, with;
    for (std::int64_t half = 0; half < 2 * job_.runs; ++half) {
      const bool pushes = (half / 2 + half) % 2 == 1;
      for (std::int64_t steps = 0; pushes && steps < job_.alone;) {
        TROUPE_TRY_ASSIGN(answer, push(sender));
        steps = answer["steps"];
      }
      TROUPE_TRY(channel_.say({{"do", pushes ? "during" : "alone"}}));
      TROUPE_TRY_ASSIGN(answer, channel_.hear());
      (pushes ? with : without).push_back(answer["p99_ms"]);
    }
    TROUPE_TRY(channel_.say({{"do", "stop"}}));
    TROUPE_TRY(channel_.hear());
    const Quartiles alone = quartiles(without), during = quartiles(with);
    const auto list = [](const Quartiles& q) { return json{q.first, q.second, q.third}; };
    return json{{"runs_p99_ms_alone", list(alone)},
                {"runs_p99_ms_during", list(during)},
                {"runs_overlap", alone.overlap(during)}};
  }

  std::int64_t sender_threads() const {
    return std::max<std::int64_t>(job_.threads - job_.engine_threads, 1);
  }

  // Publishes `pushes` versions while the receiver decodes. Returns the receiver's last answer,
  // with swap_ms added.
  Result<json> decode(const std::string& kv, std::int64_t pushes) {
    TROUPE_TRY_ASSIGN(team, cli::make_team({job_.device, sender_threads()}));
    Sender sender(job_, base_, local_, *team);
    TROUPE_TRY(begin_decoding(sender, kv));
    std::vector<double> swaps;
    for (std::int64_t i = 0; i < pushes; ++i) {
      TROUPE_TRY_ASSIGN(answer, push(sender));
      swaps.push_back(answer["swap_ms"]);
    }
    TROUPE_TRY(channel_.say({{"do", "stop"}}));
    TROUPE_TRY_ASSIGN(answer, channel_.hear());
    answer["swap_ms"] = median(swaps);
    return answer;
  }

  const PushJob& job_;
  const model::ParamStore& base_;
  weights::LocalWeightChannel& local_;
  const PushChannel& channel_;
  core::Version version_ = 0;
};

Result<json> measure(const PushJob& job, const model::ParamStore& base) {
  weights::LocalWeightChannel local;
  TROUPE_TRY_ASSIGN(sockets, PushChannel::make_sockets());
  if (job.path == "local") {
    const PushChannel theirs(std::move(sockets.second));
    const std::jthread receiver([&] { run_push_receiver(job, base, local, theirs); });
    const PushChannel mine(std::move(sockets.first));  // closes before the receiver is joined
    return PushBench(job, base, local, mine).run();
  }
  core::ChildSpec spec;
  spec.words = {"troupe-bench", "push", "receiver"};
  spec.this_program = true;
  spec.descriptors = {{sockets.second.get(), kReceiverSocket}};
  TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("a second process", std::move(spec)));
  sockets.second.close();
  const PushChannel mine(std::move(sockets.first));
  TROUPE_TRY(mine.say(job));
  return PushBench(job, base, local, mine).run();
}

struct Limits {
  double copy_gb_per_s = 0, loopback_gb_per_s = 0;
};

// The machine's limit for device: GB/s of copying on the GPU, each byte counted once.
Result<double> device_copy_gb_per_s(const PushJob& job) {
  TROUPE_TRY_ASSIGN(team, cli::make_team({job.device, 1}));
  auto& device = dynamic_cast<kernels::cuda::DeviceTeam&>(*team);
  return cli::measure_speeds(device.device()).copy_gb_per_s / 2;  // that counts reads and writes
}

// Measures the copy limit, for tcp also the loopback limit, and keeps the better of old and new.
Result<void> raise_limits(Limits& limits, const PushJob& job, std::int64_t bytes) {
  if (job.path == "device") {
    TROUPE_TRY_ASSIGN(copied, device_copy_gb_per_s(job));
    limits.copy_gb_per_s = std::max(limits.copy_gb_per_s, copied);
    return {};
  }
  async::CpuPool team(static_cast<int>(job.threads));
  limits.copy_gb_per_s = std::max(limits.copy_gb_per_s, copy_gb_per_s(team, bytes));
  if (job.path != "tcp") return {};
  TROUPE_TRY_ASSIGN(loopback, loopback_gb_per_s(bytes));
  limits.loopback_gb_per_s = std::max(limits.loopback_gb_per_s, loopback);
  return {};
}

void print(const PushJob& job,
           bool as_json,
           std::int64_t bytes,
           const Limits& limits,
           const json& figures) {
  const auto number = [&](const char* name) { return figures.at(name).get<double>(); };
  const double limit = job.path == "tcp" ? limits.loopback_gb_per_s : limits.copy_gb_per_s;
  const double share = number("gb_per_s") / limit;
  const double pause = std::max(0.0, number("step_ms_p99_during") - number("step_ms"));
  if (as_json) {
    nlohmann::ordered_json line = {{"bench", "push"},
                                   {"path", job.path},
                                   {"device", job.device},
                                   {"dtype", job.dtype},
                                   {"bytes", bytes},
                                   {"processor", cli::processor_name()},
                                   {"threads", job.threads},
                                   {"engine_threads", job.engine_threads},
                                   {"gb_per_s", figures["gb_per_s"]},
                                   {"share_of_limit", share},
                                   {"limit_gb_per_s", limit},
                                   {"copy_gb_per_s", limits.copy_gb_per_s},
                                   {"publish_gb_per_s", figures["publish_gb_per_s"]},
                                   {"pack_gb_per_s", figures["pack_gb_per_s"]},
                                   {"slice_ms_p99", figures["slice_ms_p99"]},
                                   {"slice_ms_most", figures["slice_ms_most"]},
                                   {"slices", figures["slices"]},
                                   {"slices_over", figures["slices_over"]},
                                   {"served_on_device", figures["served_on_device"]},
                                   {"pushes", job.pushes},
                                   {"slice_us", job.slice_us},
                                   {"pause_ms_p99", pause}};
    for (const char* name : {"step_ms", "step_ms_p99_alone", "step_ms_p99_during", "steps_during",
                             "swap_ms", "checked_tokens", "checked_versions", "mixed_tokens"})
      line[name] = figures.at(name);
    for (const char* name : {"runs_p99_ms_alone", "runs_p99_ms_during", "runs_overlap"})
      if (figures.contains(name)) line[name] = figures[name];
    return cli::say(line.dump());
  }
  std::printf("%.0f MB (%s) by %s, %ld threads\n", static_cast<double>(bytes) * 1e-6,
              job.dtype.c_str(), job.path.c_str(), job.threads);
  std::printf(
      "  transfer  %6.2f GB/s, %3.0f %% of the limit (%.2f); publishing %.2f, taking %.2f\n",
      number("gb_per_s"), 100 * share, limit, number("publish_gb_per_s"), number("pack_gb_per_s"));
  std::printf(
      "  slices    %.2f ms of processor time, p99; the longest %.2f; %.0f of %.0f longer than "
      "%.2f\n",
      number("slice_ms_p99"), number("slice_ms_most"), number("slices_over"), number("slices"),
      1e-3 * static_cast<double>(job.slice_us));
  std::printf("  decoding  step %.2f ms, p99 alone %.2f, during %ld pushes %.2f: pause %.2f ms\n",
              number("step_ms"), number("step_ms_p99_alone"), job.pushes,
              number("step_ms_p99_during"), pause);
  if (figures.contains("runs_overlap")) {
    const auto list = [&](const char* name) {
      const json& q = figures.at(name);
      return core::printed("%.2f (%.2f to %.2f)", q[1].get<double>(), q[0].get<double>(),
                           q[2].get<double>());
    };
    std::printf("  %ld runs   p99 alone %s, during pushes %s ms: the quartiles %s\n", job.runs,
                list("runs_p99_ms_alone").c_str(), list("runs_p99_ms_during").c_str(),
                figures["runs_overlap"] == true ? "overlap" : "do not overlap");
  }
  std::printf("  swap      %.0f ms after publishing began\n", number("swap_ms"));
  std::printf("  check     %.0f tokens of %.0f versions, %.0f with other bits than their version\n",
              number("checked_tokens"), number("checked_versions"), number("mixed_tokens"));
}

// Chooses the path where none is given. Errors: no such device (kConfig, kResources); a path that
// is none, or not one of the device (kConfig).
Result<void> check_path(PushJob& job) {
  const std::string flag = "--device " + job.device;
  const auto name = core::parse_device(job.device);
  if (!name) return fail(name.error().within(flag));
  TROUPE_TRY(cli::check_device(flag, *name));
  if (job.path.empty()) job.path = name->gpu ? "device" : "shm";
  const std::string who = "troupe bench push: --path " + job.path;
  if (job.path == "tcp") return {};
  if (name->gpu && job.path != "device") {
    return fail(ErrorCode::kConfig, who,
                "with --device " + job.device + " there are device and tcp");
  }
  if (name->gpu || job.path == "shm" || job.path == "local") return {};
  return fail(ErrorCode::kConfig, who + (job.path == "device" ? " needs --device cuda"
                                                              : "; there are shm, tcp and local"));
}

}  // namespace

Result<void> bench_push(cli::Words words) {
  if (!words.empty() && words[0] == "receiver") return bench_push_receiver();
  PushJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench push: new weights from a trainer to an engine, medians of 3",
          {{"--model", &job.model, "model folder; without it a random model of --bytes"},
           {"--bytes", &job.bytes, "approximate size of a random model", false, 1e6, 1e12},
           {"--device", &job.device, "where both sides compute: cpu, cuda or cuda:N (GPU N)"},
           {"--dtype", &job.dtype, "type of the weights sent: f32, bf16 or bf16-compute"},
           {"--path", &job.path,
            "shm, tcp (on loopback) or local (one process); with a GPU device (its memory, the "
            "default) or tcp"},
           {"--threads", &job.threads, "threads of a transfer; 0 = all cores", false, 0, 1024},
           {"--engine-threads", &job.engine_threads, "0 = all cores but one", false, 0, 1024},
           {"--pushes", &job.pushes, "pushes while the engine decodes", false, 1, 1e6},
           {"--alone", &job.alone, "steps that are timed before the pushes", false, 1, 1e6},
           {"--runs", &job.runs,
            "alternated, each of --alone steps without pushes and about as many during pushes",
            false, 0, 1000},
           {"--checked", &job.checked, "pushes whose tokens are computed again", false, 1, 1e4},
           {"--batch", &job.batch, "samples at once", false, 1, 4096},
           {"--slice-us", &job.slice_us, "time for packing between two steps", false, 1, 1e6},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY(check_path(job));
  TROUPE_TRY_ASSIGN(dtype, cli::panel_dtype("troupe bench push", job.dtype, job.device));
  if (dtype == kernels::PanelDtype::kInt8) {
    return fail(ErrorCode::kConfig, "troupe bench push: --dtype int8",
                "the check computes log-probs, for which there are f32, bf16 and bf16-compute");
  }
  if (job.threads == 0) job.threads = cli::usable_cores();
  if (job.engine_threads == 0) job.engine_threads = std::max(cli::usable_cores() - 1, 1);
  TROUPE_TRY_ASSIGN(base, base_weights(job));
  const auto bytes = static_cast<std::int64_t>(image_bytes(job, *base));
  Limits limits;
  TROUPE_TRY(raise_limits(limits, job, bytes));
  TROUPE_TRY_ASSIGN(figures, measure(job, *base));
  TROUPE_TRY(raise_limits(limits, job, bytes));
  print(job, as_json, bytes, limits, figures);
  if (figures["mixed_tokens"] == 0) return {};
  return fail(ErrorCode::kNumeric,
              "troupe bench push: " + figures["mixed_tokens"].dump() +
                  " tokens do not have the bits of the version that they claim");
}

}  // namespace troupe::bench
