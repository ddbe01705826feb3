// `troupe status`: shows a run's nodes, their roles, and which role waits for which.
#include "apps/session/status_text.hpp"
#include "apps/troupe/ask_company.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/cluster/limits.hpp"

#include <cstdio>

namespace troupe::app {

core::Result<void> run_status(Words words) {
  JoinFlags join;
  bool json = false;
  std::vector<Flag> flags = join.flags();
  flags.push_back({"--json", &json, "the whole of it as one JSON object"});
  TROUPE_TRY_ASSIGN(outcome,
                    parse_flags("troupe status: what goes on in a running company", flags, words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(status,
                    ask_company(join, actors::QueryStatus{}, cluster::limits::kLinkAnswer_max));
  const std::string text = json ? status.json + "\n" : status_page(status.json);
  std::fputs(text.c_str(), stdout);
  return {};
}

}  // namespace troupe::app
