#include "apps/bench/attach_check.hpp"
#include "apps/bench/attach_cycles.hpp"
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/ledger_check.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::app {
namespace {

struct AttachJob {
  std::int64_t cycles = 100, seed = 1;
  LabSizes sizes;
  double limit_s = 30;
  std::string keep;
};

double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(place, 1.0)) - 1];
}

// The last updates have no reward that comes or goes, so that no slot of them was issued again out
// of turn: what the ledger then misses is lost.
core::Result<nlohmann::ordered_json> measure(const AttachJob& job) {
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

core::Result<void> bench_attach(Words words) {
  AttachJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe bench attach: rewards that come and go while a run goes on",
                  {{"--cycles", &job.cycles, "of attach, re-weight, detach or kill", false, 1, 1e4},
                   {"--seed", &job.seed, "of what happens when", false, 0, 1e9},
                   {"--new-tokens", &job.sizes.new_tokens, "of a sample", false, 1, 200},
                   {"--limit-s", &job.limit_s, "of each wait, then it fails", false, 1, 600},
                   {"--keep", &job.keep, "folder for the run, which stays; else a temporary one"},
                   {"--json", &as_json, "one JSON line"}},
                  words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(figures, measure(job));
  print_figures(figures, as_json);
  if (figures["lost"] == 0 && figures["doubled"] == 0 && figures["wrong_set"] == 0) return {};
  return core::fail(core::ErrorCode::kData,
                    "troupe bench attach: samples were lost, doubled or scored by another set than "
                    "their ticket's");
}

}  // namespace troupe::app
