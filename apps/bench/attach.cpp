// `troupe bench attach`: attaches and detaches rewards of a running run. Measures how soon they
// score, and checks that no sample was lost, doubled or scored by another reward set than its
// ticket's.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/lab_run.hpp"
#include "apps/bench/ledger_check.hpp"
#include "apps/bench/score_server.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/store/ledger.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

namespace troupe::bench {
namespace {

using nlohmann::json;

constexpr double kReweight_share = 0.4, kKill_share = 0.35, kOverlap_share = 0.25;
constexpr std::uint64_t kPause_ms_max = 150;  // between the first score and the next command

struct AttachCounts {
  std::vector<double> first_score_ms;  // by cycle, from the start of the command
  std::vector<double> attached_ms;     // until the command said that the reward is attached
  std::uint64_t reweights = 0, detaches = 0, kills = 0, overlaps = 0;
};

// Goes through random cycles, drawn from a seed: attach a reward, perhaps re-weight it, then detach
// it or SIGKILL its process; sometimes the next reward is attached before that.
class AttachCycles {
 public:
  // `limit_s`: seconds that each command and each wait may take.
  AttachCycles(const LabFiles& files,
               const LabRun& run,
               const ScoreServer& server,
               std::uint64_t seed,
               double limit_s)
      : files_(files), run_(run), server_(server), rng_(seed), limit_s_(limit_s) {}

  // Ends with no reward attached.
  Result<AttachCounts> go_through(std::uint64_t cycles) {
    std::optional<Guest> staying;
    for (std::uint64_t cycle = 0; cycle < cycles; ++cycle) {
      TROUPE_TRY_ASSIGN(guest, attach(cycle));
      std::this_thread::sleep_for(std::chrono::milliseconds(rng_.next_below(kPause_ms_max)));
      // The conditions on `cycle` make sure that a short series has every kind of event, too.
      if (cycle % 5 == 1 || drawn(kReweight_share)) TROUPE_TRY(reweight(guest.name));
      if (staying) {
        TROUPE_TRY(end(std::move(*staying)));
        staying.reset();
      }
      if (cycle % 5 == 3 || drawn(kOverlap_share)) {
        staying.emplace(std::move(guest));
        ++counts_.overlaps;
      } else {
        TROUPE_TRY(end(std::move(guest)));
      }
    }
    if (staying) TROUPE_TRY(end(std::move(*staying)));
    return std::move(counts_);
  }

 private:
  struct Guest {
    std::string name;
    LoggedProcess process;
  };
  Result<Guest> attach(std::uint64_t cycle) {
    Guest guest;
    guest.name = lab_reward(cycle);
    const std::int64_t begin = clock_ns();
    TROUPE_TRY_ASSIGN(
        process, LoggedProcess::start(
                     "",
                     {"attach", "reward", "--join", files_.run(), "--name", guest.name, "--http",
                      server_.url(guest.name), "--weight", std::to_string(1 + rng_.next_below(9))},
                     files_ / ("attach-" + guest.name + ".log")));
    guest.process = std::move(process);
    std::optional<std::int64_t> first, in;
    const bool scored = holds_within(limit_s_, [&] {
      if (!in && guest.process.output().find("scores from update") != std::string::npos)
        in = clock_ns();
      first = server_.first_ns(guest.name);
      return first.has_value() || !guest.process.running();
    });
    if (!scored || !first) {
      return fail(
          ErrorCode::kPeerLost,
          "reward " + guest.name + " scored nothing within " + std::to_string(limit_s_) + " s",
          "it printed: " + guest.process.output() + "\nthe run printed:\n" + run_.output());
    }
    counts_.first_score_ms.push_back(static_cast<double>(*first - begin) * 1e-6);
    counts_.attached_ms.push_back(static_cast<double>(in.value_or(*first) - begin) * 1e-6);
    return guest;
  }

  Result<void> reweight(const std::string& name) {
    const std::string weight = std::to_string(1 + rng_.next_below(9));
    TROUPE_TRY(run_command_logged(
        {"re-weight", "reward", "--join", files_.run(), "--name", name, "--weight", weight},
        files_ / ("re-weight-" + name + ".log"), limit_s_));
    ++counts_.reweights;
    return {};
  }

  Result<void> end(Guest guest) {
    if (counts_.kills + counts_.detaches == 2 || drawn(kKill_share)) {
      ++counts_.kills;
      guest.process.signal(SIGKILL);
      return {};
    }
    ++counts_.detaches;
    TROUPE_TRY(
        run_command_logged({"detach", "reward", "--join", files_.run(), "--name", guest.name},
                           files_ / ("detach-" + guest.name + ".log"), limit_s_));
    const auto status = guest.process.wait(limit_s_);
    if (status == 0) return {};
    return fail(ErrorCode::kPeerLost, "reward " + guest.name + " was detached, but its process " +
                                          (status ? "ended with status " + std::to_string(*status)
                                                  : std::string("goes on")) +
                                          ": " + guest.process.output());
  }

  bool drawn(double share) { return rng_.next_uniform() < share; }

  const LabFiles& files_;
  const LabRun& run_;
  const ScoreServer& server_;
  core::Rng rng_;
  const double limit_s_;
  AttachCounts counts_;
};

struct SetCheck {
  std::uint64_t attached_scores = 0;  // scores in the rollouts that attached rewards gave
  std::uint64_t wrong_set = 0;        // samples scored by another set than their ticket's
  std::uint64_t wrong_score = 0;      // scores that differ from their reward's
};

// Whether `set` is the newest set that is in force at the update. A group that was issued again
// (`again`) may have a later set, because a reward of its first set may be gone.
bool fits(std::uint64_t set,
          std::uint64_t update,
          bool again,
          const std::map<std::uint64_t, std::uint64_t>& first_updates) {
  std::uint64_t due = 0;
  for (const auto& [number, first] : first_updates) {
    if (first <= update) due = number;
  }
  return set == due || (again && set > due);
}

Result<void> check_rollouts(const std::filesystem::path& file, SetCheck& check) {
  std::ifstream in(file);
  for (std::string text; std::getline(in, text);) {
    const json line = json::parse(text, nullptr, false);
    if (!line.is_object()) return fail(ErrorCode::kData, file.string() + ": a line is not JSON");
    const json rewards = line.value("rewards", json::object());
    for (const auto& [name, score] : rewards.items()) {
      const std::optional<double> right = lab_score(name);
      if (!right) continue;  // the run's own reward
      ++check.attached_scores;
      if (score != *right) ++check.wrong_score;
    }
  }
  return {};
}

// The first update (counted from 0) of each set, read from the run's output, which counts from 1:
// "reward set 3 from update 12 on: ...".
std::map<std::uint64_t, std::uint64_t> printed_sets(const std::string& output) {
  std::map<std::uint64_t, std::uint64_t> sets;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("reward set ");
    unsigned long long set = 0, update = 0;
    if (at == line.npos) continue;
    if (std::sscanf(line.c_str() + at, "reward set %llu from update %llu", &set, &update) == 2)
      sets[set] = update - 1;
  }
  return sets;
}

// Counts the samples whose ledger record names another reward set than their ticket's, and the
// rollouts' scores that their reward did not give. `run`: the run folder. Error kData: a line
// cannot be read.
Result<SetCheck> check_sets(const std::filesystem::path& run,
                            const std::map<std::uint64_t, std::uint64_t>& first_updates) {
  SetCheck check;
  TROUPE_TRY_ASSIGN(records, store::read_ledger(run / "ledger.log"));
  for (const auto& record : records) {
    const json group = json::parse(record.text, nullptr, false);
    if (!group.is_object()) return fail(ErrorCode::kData, "a ledger record is not JSON");
    const auto samples = group.value("samples", std::uint64_t{0});
    const bool again = group.value("attempt", std::uint64_t{0}) > 0;
    if (!fits(group.value("set", std::uint64_t{0}), group.value("update", std::uint64_t{0}), again,
              first_updates)) {
      check.wrong_set += samples;
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run / "rollouts", error))
    TROUPE_TRY(check_rollouts(entry.path(), check));
  return check;
}

struct AttachJob {
  std::int64_t cycles = 100, seed = 1;
  LabSizes sizes;
  double limit_s = 30;
  std::string keep;
};

// The smallest value that at least `share` of the values do not exceed.
double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(place, 1.0)) - 1];
}

// No reward comes or goes during the last updates, so that no slot waits to be issued again when
// the run ends: a slot that is missing in the ledger is lost.
Result<nlohmann::ordered_json> measure(const AttachJob& job) {
  TROUPE_TRY_ASSIGN(files, LabFiles::make({}, job.keep));
  TROUPE_TRY_ASSIGN(server, ScoreServer::open());
  TROUPE_TRY_ASSIGN(
      run,
      LabRun::start(files, job.sizes, {"--ckpt.save_steps=1000", "--ckpt.max_num=1"}, job.limit_s));
  TROUPE_TRY(run.reach(3));
  AttachCycles cycles(files, run, *server, static_cast<std::uint64_t>(job.seed), job.limit_s);
  TROUPE_TRY_ASSIGN(counts, cycles.go_through(static_cast<std::uint64_t>(job.cycles)));
  TROUPE_TRY(run.reach(run.updates() + 6));
  TROUPE_TRY(run.interrupt());
  const auto step_s = run.metric("time/step", 3);
  const auto printed = printed_sets(run.output());
  TROUPE_TRY_ASSIGN(ledger, check_ledger(files.run()));
  TROUPE_TRY_ASSIGN(sets, check_sets(files.run(), printed));
  return nlohmann::ordered_json{
      {"bench", "attach"},
      {"processor", cli::processor_name()},
      {"cores", cli::usable_cores()},
      {"cycles", counts.first_score_ms.size()},
      {"seed", job.seed},
      {"reweights", counts.reweights},
      {"detaches", counts.detaches},
      {"kills", counts.kills},
      {"overlaps", counts.overlaps},
      {"first_score_ms", median(counts.first_score_ms)},
      {"first_score_ms_p99", at_share(counts.first_score_ms, 0.99)},
      {"first_score_ms_max", at_share(counts.first_score_ms, 1)},
      {"attached_ms", median(counts.attached_ms)},
      {"update_ms", step_s.empty() ? 0 : 1e3 * median(step_s)},
      {"updates", ledger.updates},
      {"samples", ledger.samples},
      {"attached_scores", sets.attached_scores},
      {"set_changes", printed.size()},
      {"lost", ledger.lost()},
      {"doubled", ledger.doubled()},
      {"wrong_set", sets.wrong_set + sets.wrong_score + ledger.wrong_scores + ledger.unclear_sets}};
}

}  // namespace

Result<void> bench_attach(cli::Words words) {
  AttachJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench attach: rewards that come and go while a run goes on",
          {{"--cycles", &job.cycles, "cycles of attach, re-weight, detach or kill", false, 1, 1e4},
           {"--seed", &job.seed, "seed of the order of events", false, 0, 1e9},
           {"--new-tokens", &job.sizes.new_tokens, "tokens of a sample", false, 1, 200},
           {"--limit-s", &job.limit_s, "seconds of each wait before the run fails", false, 1, 600},
           {"--keep", &job.keep, "folder for the run, which stays; else a temporary one"},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(figures, measure(job));
  print_figures(figures, as_json);
  if (figures["lost"] == 0 && figures["doubled"] == 0 && figures["wrong_set"] == 0) return {};
  return fail(ErrorCode::kData,
              "troupe bench attach: samples were lost, doubled or scored by another set than "
              "their ticket's");
}

}  // namespace troupe::bench
