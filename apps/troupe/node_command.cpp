// `troupe node`: runs roles of a company whose head is another process, here or on another host.
#include "apps/session/node/output_keeper.hpp"
#include "apps/session/node/pass_file.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/join_as_node.hpp"
#include "apps/troupe/node_ranks.hpp"
#include "apps/troupe/own_name.hpp"
#include "apps/troupe/rejoining.hpp"
#include "runtime/collective/limits.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/host_name.hpp"
#include "runtime/learn/trainers.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace troupe::app {
namespace {

struct NodeOptions {
  session::JoinFlags join;
  std::string roles = "generator", name, local, relay;
  std::int64_t ranks = 1;
  double wait_s = 0;
};

Result<std::vector<std::string>> kinds_of(const std::string& text) {
  std::vector<std::string> kinds;
  std::istringstream words(text);
  for (std::string kind; std::getline(words, kind, ',');) {
    constexpr std::string_view kKinds[] = {"generator", "reward", "reference",  "teacher",
                                           "critic",    "policy", "environment"};
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) {
      const std::string near(core::nearest_word(kind, kKinds));
      return fail(ErrorCode::kConfig,
                  "--roles: there is no role '" + kind +
                      "', only generator, reward, reference, teacher, critic, policy, "
                      "environment",
                  near.empty() ? "" : "did you mean " + near + "?");
    }
    kinds.push_back(kind);
  }
  if (kinds.empty()) return fail(ErrorCode::kConfig, "--roles: name at least one role");
  return kinds;
}

// Host and process, with '-' for what a name cannot hold.
std::string default_name() {
  std::string name = core::host_name("host") + "-" + std::to_string(::getpid());
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !core::is_plain_character(c); }, '-');
  return name;
}

// Runs the node that `troupe train` started as this process.
Result<void> run_local(const NodeOptions& options, const session::NodeSelf& self) {
  const std::filesystem::path file = options.local;
  session::keep_output_in(std::filesystem::path(file).replace_extension(".log"));
  const std::filesystem::path pid_file = std::filesystem::path(file).replace_extension(".pid");
  TROUPE_TRY_ASSIGN(held, session::hold_pid_file(pid_file));
  const auto enter_here = [&file]() -> Result<session::Entrance> {
    TROUPE_TRY_ASSIGN(pass, session::read_pass(file));
    return session::Entrance{pass.socket, pass.pass};
  };
  session::NodeCalls calls;
  calls.maker = [](actors::gang::AskToMeet meet) {
    return std::make_unique<session::RoleLoader>(nullptr, std::move(meet));
  };
  calls.note = cli::say;
  calls.find_again = enter_here;
  // A head finds it by that file; another run may have begun in the folder of a run set aside.
  calls.may_wait = [&held = held, &pid_file] { return session::lies_there(held, pid_file); };
  calls.end_now = [] { ::_exit(kWedged); };
  TROUPE_TRY_ASSIGN(entrance, enter_here());
  TROUPE_TRY_ASSIGN(end, session::live_as_node(self, std::move(entrance), calls));
  if (end == session::NodeEnd::kLost) return fail(ErrorCode::kPeerLost, "the run went away");
  return {};
}

}  // namespace

Result<void> run_node(cli::Words words) {
  if (!words.empty() && words[0] == "drain") return run_drain(words.subspan(1));
  NodeOptions options;
  std::vector<cli::Flag> flags = options.join.flags();
  flags[0].required = false;
  flags.push_back(
      {"--roles", &options.roles, "kinds of roles: generator,reward,reference,critic,policy"});
  flags.push_back(
      {"--relay", &options.relay, "HOST:PORT of this host at which other nodes fetch weights"});
  flags.push_back({"--name", &options.name, "name of the node (default: host and pid)"});
  flags.push_back({"--ranks", &options.ranks,
                   "processes, each a node NAME-I that runs a rank of a gang (default: 1)", false,
                   1, double{collective::limits::kRanks_max}});
  flags.push_back(session::wait_flag(options.wait_s));
  // Only `troupe train` uses this flag, for the processes that it starts.
  if (std::find(words.begin(), words.end(), "--local") != words.end())
    flags.push_back({"--local", &options.local, "file with the pass of the company on this host"});
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags("troupe node: runs roles for a running company. Starts in "
                                "any order: it waits for the company. `troupe node drain NAME` "
                                "takes a node out of a run.",
                                flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  session::NodeSelf self;
  TROUPE_TRY_ASSIGN(kinds, kinds_of(options.roles));
  self.kinds = std::move(kinds);
  const auto offers = [&](const char* kind) {
    return std::find(self.kinds.begin(), self.kinds.end(), kind) != self.kinds.end();
  };
  if (options.ranks > 1 && !options.relay.empty()) {
    return fail(ErrorCode::kConfig, "--relay: several processes cannot listen at one address",
                "start a node of its own for the generators of this host");
  }
  if (options.name.empty()) options.name = default_name();
  TROUPE_TRY(check_own_name(options.name));
  self.name = "node/" + options.name;
  if (!options.local.empty()) return run_local(options, self);
  if (options.join.join.empty())
    return fail(ErrorCode::kConfig, "--join is not set", "give HOST:PORT of a running company");
  if (offers("critic") || offers("policy")) TROUPE_TRY(learn::find_trainers());
  if (options.ranks > 1) return run_node_ranks(options.name, options.ranks, words);
  NodePlace place;
  place.join = options.join;
  place.self = std::move(self);
  place.relay = options.relay;
  place.wait_s = options.wait_s;
  return join_as_node(place);
}

}  // namespace troupe::app
