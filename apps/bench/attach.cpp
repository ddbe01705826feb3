#include "apps/bench/attach.hpp"

#include "apps/bench/attach_check.hpp"
#include "apps/bench/attach_cycles.hpp"
#include "apps/bench/train_job.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/ledger_check.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace troupe::app {
namespace {

using core::Result;

struct AttachJob {
  std::int64_t cycles = 100, seed = 1, new_tokens = 16;
  double limit_s = 30;
  std::string keep;
  bool json = false;
};

struct AttachFigures {
  AttachCounts counts;
  LedgerCheck ledger;
  SetCheck sets;
  std::uint64_t set_changes = 0;
  double step_ms = 0;

  std::uint64_t wrong_set() const {
    return sets.wrong_set + sets.wrong_score + ledger.wrong_scores + ledger.unclear_sets;
  }
};

std::vector<std::string> settings_of(const AttachJob& job) {
  return {"--train.staleness_max",
          "1",
          "--train.max_steps",
          "1000000",
          "--rollout.batch_size",
          "4",
          "--rollout.n_samples_per_prompt",
          "4",
          "--rollout.max_new_tokens",
          std::to_string(job.new_tokens),
          "--ckpt.save_steps",
          "1000",
          "--ckpt.max_num",
          "1"};
}

// The last updates have no reward that comes or goes, so that no slot of them was issued again out
// of turn: what the ledger then misses is lost.
Result<AttachFigures> measure(const AttachJob& job) {
  TROUPE_TRY_ASSIGN(files, LabFiles::make({}, job.keep));
  TROUPE_TRY_ASSIGN(server, ScoreServer::open());
  TROUPE_TRY_ASSIGN(run, LabRun::start(files, settings_of(job)));
  TROUPE_TRY(run.reach(3, job.limit_s));
  AttachFigures figures;
  AttachCycles cycles(files, run, *server, static_cast<std::uint64_t>(job.seed));
  TROUPE_TRY_SET(figures.counts,
                 cycles.go_through(static_cast<std::uint64_t>(job.cycles), job.limit_s));
  TROUPE_TRY(run.reach(run.updates() + 6, job.limit_s));
  TROUPE_TRY(run.interrupt(job.limit_s));
  const auto step_s = run.metric("time/step", 3);
  figures.step_ms = step_s.empty() ? 0 : 1e3 * median(step_s);
  figures.set_changes = printed_sets(run.output()).size();
  TROUPE_TRY_SET(figures.ledger, check_ledger(files.run()));
  TROUPE_TRY_ASSIGN(sets, check_sets(files.run(), printed_sets(run.output())));
  figures.sets = sets;
  return figures;
}

double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(place, 1.0)) - 1];
}

void print(const AttachJob& job, const AttachFigures& figures) {
  const AttachCounts& counts = figures.counts;
  const nlohmann::ordered_json line = {
      {"bench", "attach"},
      {"processor", processor_name()},
      {"cores", usable_cores()},
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
      {"update_ms", figures.step_ms},
      {"updates", figures.ledger.updates},
      {"samples", figures.ledger.samples},
      {"attached_scores", figures.sets.attached_scores},
      {"set_changes", figures.set_changes},
      {"lost", figures.ledger.lost()},
      {"doubled", figures.ledger.doubled()},
      {"wrong_set", figures.wrong_set()}};
  if (job.json) {
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  for (const auto& [name, value] : line.items())
    std::printf("%-20s %s\n", name.c_str(), value.dump().c_str());
}

}  // namespace

Result<void> bench_attach(Words words) {
  AttachJob job;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe bench attach: rewards that come and go while a run goes on",
                  {{"--cycles", &job.cycles, "of attach, re-weight, detach or kill", false, 1, 1e4},
                   {"--seed", &job.seed, "of what happens when", false, 0, 1e9},
                   {"--new-tokens", &job.new_tokens, "of a sample", false, 1, 200},
                   {"--limit-s", &job.limit_s, "of each wait, then it fails", false, 1, 600},
                   {"--keep", &job.keep, "folder for the run, which stays; else a temporary one"},
                   {"--json", &job.json, "one JSON line"}},
                  words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(figures, measure(job));
  print(job, figures);
  if (figures.ledger.lost() + figures.ledger.doubled() + figures.wrong_set() == 0) return {};
  return core::fail(core::ErrorCode::kData,
                    "troupe bench attach: samples were lost, doubled or scored by another set than "
                    "their ticket's");
}

}  // namespace troupe::app
