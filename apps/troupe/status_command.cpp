// `troupe status`: shows a run's nodes, their roles, and which role waits for which.
#include "apps/session/status_text.hpp"
#include "apps/troupe/ask_company.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/cluster/limits.hpp"

#include <cstdio>

namespace troupe::app {

Result<void> run_status(cli::Words words) {
  session::JoinFlags join;
  bool json = false;
  std::vector<cli::Flag> flags = join.flags();
  flags.push_back({"--json", &json, "print the whole status as one JSON object"});
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags("troupe status: what goes on in a running company", flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(status,
                    ask_company(join, actors::QueryStatus{}, cluster::limits::kLinkAnswer_max));
  const std::string text = json ? status.json + "\n" : session::status_page(status.json);
  std::fputs(text.c_str(), stdout);
  return {};
}

}  // namespace troupe::app
