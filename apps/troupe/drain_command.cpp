// `troupe node drain NAME`: takes a node out of a live run.
#include "apps/troupe/commands.hpp"
#include "apps/troupe/drain_node.hpp"

namespace troupe::app {

Result<void> run_drain(cli::Words words) {
  session::JoinFlags join;
  double wait_s = 60;
  std::vector<cli::Flag> flags = join.flags();
  flags.push_back({"--wait-s", &wait_s,
                   "seconds for its generators to finish what they sample; the rest is moved",
                   false, 0, 86400});
  const std::string name = words.empty() || words[0].starts_with("-") ? "" : words[0];
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags("troupe node drain: takes the node NAME out of a run. It gets no new "
                       "work; when it has none, it is dismissed and not started again.",
                       flags, name.empty() ? words : words.subspan(1)));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (name.empty()) {
    return fail(ErrorCode::kConfig,
                "troupe node drain: which node? Give its name first, as in `troupe node "
                "drain gpu1 --join RUN`",
                "`troupe status --join RUN` lists them");
  }
  TROUPE_TRY(drain_node(join, name, wait_s));
  cli::say("node " + name + " has left the run");
  return {};
}

}  // namespace troupe::app
