// `troupe plan`: prints where the roles of a configuration go, what they take of each device, and
// whether that fits. Starts nothing; of models it reads config.json alone.
#include "apps/session/fitted_lengths.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/plan/plan_flags.hpp"
#include "apps/troupe/plan/plan_words.hpp"
#include "runtime/config/read.hpp"

#include <cstdio>
#include <string>

namespace troupe::app {

Result<void> run_plan(cli::Words words) {
  bool help_shown = false;
  TROUPE_TRY_ASSIGN(flags, read_plan_flags(words, help_shown));
  if (help_shown) return {};
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
