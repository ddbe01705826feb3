// `troupe plan`: prints where the roles of a configuration go, what they take of each device, and
// whether that fits. Starts nothing; of models it reads config.json alone.
#include "apps/cli/system_facts.hpp"
#include "apps/session/fitted_lengths.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/plan/plan_flags.hpp"
#include "apps/troupe/plan/plan_words.hpp"
#include "runtime/config/read.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace troupe::app {

namespace {

// Without a cluster the run is one of this machine, as far as nobody says otherwise.
void take_own_memory(PlanFlags& flags) {
  if (!flags.cluster.empty() || flags.host_gb > 0) return;
  const cli::MemoryFacts memory = cli::memory_facts();
  std::uint64_t bytes = memory.total_bytes;
  if (memory.limit_bytes > 0) bytes = std::min(bytes, memory.limit_bytes);
  if (bytes == 0) return;
  flags.host_gb = static_cast<double>(bytes) / 1e9;
  std::fprintf(stderr,
               "note: judged by the memory of this machine, %.1f GB; --host-gb names another\n",
               flags.host_gb);
}

}  // namespace

Result<void> run_plan(cli::Words words) {
  bool help_shown = false;
  TROUPE_TRY_ASSIGN(flags, read_plan_flags(words, help_shown));
  if (help_shown) return {};
  take_own_memory(flags);
  TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), flags.config));
  TROUPE_TRY(session::fit_lengths(builder));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  TROUPE_TRY_ASSIGN(facts, plan_facts(config, builder.origins(), flags));
  TROUPE_TRY_ASSIGN(made, plan::plan_of(facts));
  std::fputs((flags.json ? plan_json(facts, made) : plan_text(facts, made)).c_str(), stdout);
  if (made.fits()) return {};
  std::string names;
  for (const plan::Shortfall& shortfall : made.shortfalls)
    names += (names.empty() ? "" : ", ") + facts.roles[shortfall.role].name;
  return fail(ErrorCode::kResources, "does not fit: " + names,
              "the last lines of the plan say what helps");
}

}  // namespace troupe::app
