// `troupe bench collectives`: bytes a second between the processes of one role, against what the
// machine can do. This process is rank 0 and starts the others.
#include "runtime/collective/collectives.hpp"

#include "apps/bench/bench.hpp"
#include "apps/bench/copy_limits.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/temporary_folder.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/child_process.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::app {
namespace {

using core::Result;

struct CollectivesJob {
  std::int64_t ranks = 2, bytes = 64'000'000;
  std::int64_t window = collective::limits::kRankWindow_bytes;
  std::string path = "shm", folder;
  std::int64_t rank = 0;
};

// Seconds of each operation, one entry a repetition.
struct RankTimes {
  std::vector<double> send, all_gather, all_to_all, barrier;
};

// One rank. All have the same buffers: a part for each rank, to send and to receive.
class BenchRank {
 public:
  explicit BenchRank(const CollectivesJob& job)
      : job_(job), ranks_(options_of(job)), out_(job.bytes), in_(job.ranks * job.bytes) {
    std::memset(out_.data(), 1, static_cast<std::size_t>(job.bytes));
    std::memset(in_.data(), 1, static_cast<std::size_t>(in_.size()));
  }

  Result<RankTimes> run() {
    collective::FolderRendezvous rendezvous(job_.folder);
    TROUPE_TRY(ranks_.connect(rendezvous));
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
        if (ranks_.rank() == 0) return ranks_.send(1, mine);
        if (ranks_.rank() == 1) return ranks_.recv(0, in[0]);
        return {};
      }));
      TROUPE_TRY(timed(times.all_gather, [&] { return ranks_.all_gather(mine, in); }));
      TROUPE_TRY(timed(times.all_to_all, [&] { return ranks_.all_to_all(out, in); }));
      TROUPE_TRY(timed(times.barrier, [&] { return many_barriers(); }));
    }
    return times;
  }

  static constexpr int kBarriers = 100;

 private:
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
  collective::Collectives ranks_;
  core::Buffer<char> out_, in_;
};

// The median without the first round, which warms up.
double middle_of(std::vector<double> times) {
  times.erase(times.begin());
  return median(std::move(times));
}

Result<RankTimes> run_bench_ranks(CollectivesJob job) {
  TROUPE_TRY_ASSIGN(folder, TemporaryFolder::make("troupe-ranks"));
  job.folder = folder.path().string();
  std::vector<core::ChildProcess> others;
  for (std::int64_t rank = 1; rank < job.ranks; ++rank) {
    core::ChildSpec spec;
    spec.words = {"troupe",
                  "bench",
                  "collectives",
                  "--rank",
                  std::to_string(rank),
                  "--ranks",
                  std::to_string(job.ranks),
                  "--bytes",
                  std::to_string(job.bytes),
                  "--window",
                  std::to_string(job.window),
                  "--path",
                  job.path,
                  "--folder",
                  job.folder};
    spec.this_program = true;
    TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("another rank", std::move(spec)));
    others.push_back(std::move(child));
  }
  auto times = BenchRank(job).run();
  for (core::ChildProcess& other : others) {
    if (times) other.wait();
  }
  return times;
}

struct MovingLimits {
  double copy = 0, one_pair = 0, all_pairs = 0;  // GB/s
};

// The better of two measurements, before and after the run: other load only lowers them.
Result<void> raise_moving_limits(MovingLimits& limits, const CollectivesJob& job) {
  async::CpuPool team(usable_cores());
  limits.copy = std::max(limits.copy, copy_gb_per_s(team, job.bytes));
  if (job.path == "tcp") {
    TROUPE_TRY_ASSIGN(loopback, loopback_gb_per_s(job.bytes));
    limits.one_pair = limits.all_pairs = std::max(limits.one_pair, loopback);
    return {};
  }
  const int pairs = std::max(1, std::min(static_cast<int>(job.ranks), usable_cores()) / 2);
  TROUPE_TRY_ASSIGN(one, window_gb_per_s(job.bytes, job.window, 1));
  TROUPE_TRY_ASSIGN(all, window_gb_per_s(job.bytes, job.window, pairs));
  limits.one_pair = std::max({limits.one_pair, one, pairs == 1 ? all : 0});
  limits.all_pairs = std::max({limits.all_pairs, all, pairs == 1 ? one : 0});
  return {};
}

}  // namespace

Result<void> bench_collectives(Words words) {
  CollectivesJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe bench collectives: bytes between the processes of one role, medians of 3",
                  {{"--ranks", &job.ranks, "processes", false, 2, 64},
                   {"--bytes", &job.bytes, "from each rank to each other", false, 1, 1e10},
                   {"--path", &job.path, "shm, or tcp (on loopback)"},
                   {"--window", &job.window, "bytes of shared memory for each ordered pair", false,
                    1, static_cast<double>(collective::limits::kRankWindow_bytes_max)},
                   {"--json", &as_json, "one JSON line"},
                   {"--rank", &job.rank, "what this process is; 0 starts the others", false, 0, 63},
                   {"--folder", &job.folder, "where the others meet; set by rank 0"}},
                  words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  if (job.path != "shm" && job.path != "tcp") {
    return core::fail(core::ErrorCode::kConfig,
                      "troupe bench collectives: --path " + job.path + "; there are shm and tcp");
  }
  if (job.rank > 0) {
    TROUPE_TRY(BenchRank(job).run());
    return {};
  }
  MovingLimits limits;
  TROUPE_TRY(raise_moving_limits(limits, job));
  TROUPE_TRY_ASSIGN(times, run_bench_ranks(job));
  TROUPE_TRY(raise_moving_limits(limits, job));
  const auto bytes = static_cast<double>(job.bytes);
  const auto pairs = static_cast<double>(job.ranks * (job.ranks - 1));
  const double send = 1e-9 * bytes / middle_of(times.send);
  const double all_gather = 1e-9 * bytes * pairs / middle_of(times.all_gather);
  const double all_to_all = 1e-9 * bytes * pairs / middle_of(times.all_to_all);
  print_figures({{"bench", "collectives"},
                 {"processor", processor_name()},
                 {"cores", usable_cores()},
                 {"path", job.path},
                 {"ranks", job.ranks},
                 {"bytes", job.bytes},
                 {"window_bytes", job.window},
                 {"send_gb_per_s", send},
                 {"send_share_of_limit", send / limits.one_pair},
                 {"all_gather_gb_per_s", all_gather},
                 {"all_gather_share_of_limit", all_gather / limits.all_pairs},
                 {"all_to_all_gb_per_s", all_to_all},
                 {"all_to_all_share_of_limit", all_to_all / limits.all_pairs},
                 {"barrier_us", 1e6 * middle_of(times.barrier) / (BenchRank::kBarriers + 1)},
                 {"limit_gb_per_s", limits.one_pair},
                 {"limit_all_gb_per_s", limits.all_pairs},
                 {"copy_gb_per_s", limits.copy}},
                as_json);
  return {};
}

}  // namespace troupe::app
