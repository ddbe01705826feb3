// `troupe bench collectives`: bytes a second between the processes of one role, against what the
// machine can do. This process is rank 0 and starts the others.
#include "runtime/collective/collectives.hpp"

#include "apps/bench/bench.hpp"
#include "apps/bench/copy_limits.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/temporary_folder.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "kernels/cuda/library.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/collective/nccl_link.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/learn/torch/libtorch.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::bench {
namespace {

struct CollectivesJob {
  std::int64_t ranks = 2, bytes = 64'000'000;
  std::int64_t window = collective::limits::kRankWindow_bytes;
  std::string path = "shm", device = "cpu", folder;
  std::int64_t rank = 0;
};

// Seconds of each operation, one entry a repetition.
struct RankTimes {
  std::vector<double> send, all_gather, all_to_all, barrier;
};

// One rank. All have the same buffers: a part for each rank, to send and to receive.
class BenchRank {
 public:
  explicit BenchRank(const CollectivesJob& job) : job_(job), ranks_(options_of(job)) {}

  // Rank r has the device cuda:r, where there are devices.
  Result<void> open() {
    collective::FolderRendezvous rendezvous(job_.folder);
    if (job_.device == "cuda")
      TROUPE_TRY_SET(device_, kernels::cuda::open_device(static_cast<int>(job_.rank)));
    out_ = core::Buffer<char>(job_.bytes, memory());
    in_ = core::Buffer<char>(job_.ranks * job_.bytes, memory());
    const std::vector<char> ones(static_cast<std::size_t>(in_.size()), 1);
    in_.upload(ones);
    out_.upload(std::span(ones).first(static_cast<std::size_t>(job_.bytes)));
    TROUPE_TRY(ranks_.connect(rendezvous));
    if (device_ == nullptr) return {};
    return ranks_.use(collective::make_nccl_link(*device_, learn::packages_beside_libtorch()));
  }
  // What moves the bytes of devices.
  std::string link() const { return ranks_.link_name().empty() ? "none" : ranks_.link_name(); }

  Result<RankTimes> run() {
    const auto size = static_cast<std::size_t>(job_.bytes);
    std::vector<collective::Place> in;
    for (std::int64_t rank = 0; rank < job_.ranks; ++rank)
      in.push_back({in_.data() + rank * job_.bytes, size});
    const collective::Source mine{out_.data(), size};
    in[static_cast<std::size_t>(job_.rank)].at = out_.data();  // its own part is there already
    const std::vector<collective::Source> out(in.size(), mine);
    RankTimes times;
    for (int round = 0; round <= kRepetitions; ++round) {
      TROUPE_TRY(timed(times.send, [&]() -> Result<void> {
        if (ranks_.rank() == 0) return ranks_.send(1, mine, memory());
        if (ranks_.rank() == 1) return ranks_.recv(0, in[0], memory());
        return {};
      }));
      TROUPE_TRY(timed(times.all_gather, [&] { return ranks_.all_gather(mine, in, memory()); }));
      TROUPE_TRY(timed(times.all_to_all, [&] { return ranks_.all_to_all(out, in, memory()); }));
      TROUPE_TRY(timed(times.barrier, [&] { return many_barriers(); }));
    }
    return times;
  }

  static constexpr int kBarriers = 100;

 private:
  core::Memory& memory() { return device_ == nullptr ? core::host_memory() : device_->memory(); }

  Result<void> many_barriers() {
    for (int i = 0; i < kBarriers; ++i)
      TROUPE_TRY(ranks_.barrier());
    return {};
  }

  static collective::RankOptions options_of(const CollectivesJob& job) {
    collective::RankOptions options;
    options.gang = {core::RunId{1}, "bench", 1};
    options.rank = static_cast<int>(job.rank);
    options.size = static_cast<int>(job.ranks);
    options.window_bytes = static_cast<std::uint64_t>(job.window);
    if (job.path == "tcp") {
      options.tcp_host = "127.0.0.1";
      options.host_id = "host of rank " + std::to_string(job.rank);
    }
    if (job.rank == 0)
      options.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    return options;
  }

  // From a barrier to a barrier: after it, all bytes are there on all ranks.
  template <class Operation>
  Result<void> timed(std::vector<double>& times, const Operation& operation) {
    TROUPE_TRY(ranks_.barrier());
    const Stopwatch watch;
    TROUPE_TRY(operation());
    TROUPE_TRY(ranks_.barrier());
    times.push_back(watch.seconds());
    return {};
  }

  const CollectivesJob job_;
  std::unique_ptr<kernels::cuda::Device> device_;  // null: on processors
  collective::Collectives ranks_;
  core::Buffer<char> out_, in_;
};

// The median without the first round, which warms up.
double middle_of(std::vector<double> times) {
  times.erase(times.begin());
  return median(std::move(times));
}

struct BenchOutcome {
  RankTimes times;
  std::string link;
};

Result<BenchOutcome> run_bench_ranks(CollectivesJob job) {
  TROUPE_TRY_ASSIGN(folder, TemporaryFolder::make("troupe-ranks"));
  job.folder = folder.path().string();
  std::vector<core::ChildProcess> others;
  for (std::int64_t rank = 1; rank < job.ranks; ++rank) {
    core::ChildSpec spec;
    spec.words = {"troupe-bench", "collectives",
                  "--rank",       std::to_string(rank),
                  "--ranks",      std::to_string(job.ranks),
                  "--bytes",      std::to_string(job.bytes),
                  "--window",     std::to_string(job.window),
                  "--path",       job.path,
                  "--device",     job.device,
                  "--folder",     job.folder};
    spec.this_program = true;
    TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("another rank", std::move(spec)));
    others.push_back(std::move(child));
  }
  BenchRank rank(job);
  TROUPE_TRY(rank.open());
  TROUPE_TRY_ASSIGN(times, rank.run());
  for (core::ChildProcess& other : others)
    other.wait();
  return BenchOutcome{std::move(times), rank.link()};
}

struct MovingLimits {
  double copy = 0, one_pair = 0, all_pairs = 0;  // GB/s
};

// The better of two measurements, before and after the run: other load only lowers them.
Result<void> raise_moving_limits(MovingLimits& limits, const CollectivesJob& job) {
  async::CpuPool team(cli::usable_cores());
  limits.copy = std::max(limits.copy, copy_gb_per_s(team, job.bytes));
  if (job.path == "tcp") {
    TROUPE_TRY_ASSIGN(loopback, loopback_gb_per_s(job.bytes));
    limits.one_pair = limits.all_pairs = std::max(limits.one_pair, loopback);
    return {};
  }
  const int pairs = std::max(1, std::min(static_cast<int>(job.ranks), cli::usable_cores()) / 2);
  TROUPE_TRY_ASSIGN(one, window_gb_per_s(job.bytes, job.window, 1));
  TROUPE_TRY_ASSIGN(all, window_gb_per_s(job.bytes, job.window, pairs));
  limits.one_pair = std::max({limits.one_pair, one, pairs == 1 ? all : 0});
  limits.all_pairs = std::max({limits.all_pairs, all, pairs == 1 ? one : 0});
  return {};
}

void print_moving(const CollectivesJob& job,
                  const BenchOutcome& outcome,
                  const MovingLimits& limits,
                  bool as_json) {
  const RankTimes& times = outcome.times;
  const auto bytes = static_cast<double>(job.bytes);
  const auto pairs = static_cast<double>(job.ranks * (job.ranks - 1));
  nlohmann::ordered_json figures{
      {"bench", "collectives"},       {"processor", cli::processor_name()},
      {"cores", cli::usable_cores()}, {"path", job.path},
      {"ranks", job.ranks},           {"bytes", job.bytes},
      {"window_bytes", job.window}};
  const bool on_host = job.device == "cpu";
  if (!on_host) figures["link"] = outcome.link;
  const auto add = [&](const std::string& name, double moved, std::vector<double> seconds,
                       double limit) {
    const double rate = 1e-9 * moved / middle_of(std::move(seconds));
    figures[name + "_gb_per_s"] = rate;
    if (on_host) figures[name + "_share_of_limit"] = rate / limit;
  };
  add("send", bytes, times.send, limits.one_pair);
  add("all_gather", bytes * pairs, times.all_gather, limits.all_pairs);
  add("all_to_all", bytes * pairs, times.all_to_all, limits.all_pairs);
  figures["barrier_us"] = 1e6 * middle_of(times.barrier) / (BenchRank::kBarriers + 1);
  if (on_host) {
    figures["limit_gb_per_s"] = limits.one_pair;
    figures["limit_all_gb_per_s"] = limits.all_pairs;
    figures["copy_gb_per_s"] = limits.copy;
  }
  print_figures(figures, as_json);
}

}  // namespace

Result<void> bench_collectives(cli::Words words) {
  CollectivesJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench collectives: bytes between the processes of one role, medians of 3",
          {{"--ranks", &job.ranks, "processes", false, 2, 64},
           {"--bytes", &job.bytes, "bytes from each rank to each other", false, 1, 1e10},
           {"--path", &job.path, "shm, or tcp (on loopback)"},
           {"--device", &job.device, "cpu, or cuda (rank r has cuda:r)"},
           {"--window", &job.window, "bytes of shared memory for each ordered pair", false, 1,
            static_cast<double>(collective::limits::kRankWindow_bytes_max)},
           {"--json", &as_json, "one JSON line"},
           {"--rank", &job.rank, "what this process is; 0 starts the others", false, 0, 63},
           {"--folder", &job.folder, "where the others meet; set by rank 0"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (job.path != "shm" && job.path != "tcp") {
    return fail(ErrorCode::kConfig, "troupe bench collectives: --path " + job.path,
                "there are shm and tcp");
  }
  if (job.device != "cpu" && job.device != "cuda") {
    return fail(ErrorCode::kConfig, "troupe bench collectives: --device " + job.device,
                "there are cpu and cuda");
  }
  if (job.rank > 0) {
    BenchRank rank(job);
    TROUPE_TRY(rank.open());
    TROUPE_TRY(rank.run());
    return {};
  }
  MovingLimits limits;
  const bool on_host = job.device == "cpu";  // a device has no known limit
  if (on_host) TROUPE_TRY(raise_moving_limits(limits, job));
  TROUPE_TRY_ASSIGN(outcome_of_ranks, run_bench_ranks(job));
  if (on_host) TROUPE_TRY(raise_moving_limits(limits, job));
  print_moving(job, outcome_of_ranks, limits, as_json);
  return {};
}

}  // namespace troupe::bench
