// `troupe attach environment`, `detach environment`: an environment of another process, or host,
// that takes episodes of a live run in addition to those that the run has.
#include "apps/session/roles/environment_parts.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/drain_node.hpp"
#include "apps/troupe/join_as_node.hpp"
#include "apps/troupe/own_name.hpp"
#include "apps/troupe/rejoining.hpp"
#include "runtime/config/table.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace troupe::app {
namespace {

// Digits alone are the names of the run's own environments.
Result<void> check_name(const std::string& name) {
  if (name.empty())
    return fail(ErrorCode::kConfig, "--name is not set", "give the environment a name");
  TROUPE_TRY(check_own_name(name));
  const bool number = std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); });
  if (!number) return {};
  return fail(ErrorCode::kConfig, "--name " + name + ": not digits alone", "add a letter");
}

}  // namespace

Result<void> run_attach_environment(cli::Words words) {
  session::JoinFlags join;
  config::TrainConfig own = config::default_config();
  auto& env = own.env;
  std::string name;
  bool unconfined = false, open = false;
  session::GuestFlags guest;
  std::vector<cli::Flag> flags = join.flags();
  const std::vector<cli::Flag> more = {
      {"--name", &name, "name of the environment in the run"},
      {"--python", &env.python, "file with an environment, as env.python"},
      {"--workers", &env.workers, "processes that run --python", false, 1, 256},
      {"--interpreter", &env.interpreter, "Python that runs --python, as env.interpreter"},
      {"--command", &env.command, "an agent, run once for each episode, as env.command"},
      {"--no-confined", &unconfined, "--command sees the network and your files"},
      {"--openenv", &env.openenv, "URL of an OpenEnv server, as env.openenv"},
      {"--action", &env.action, "action of --openenv as JSON, as env.action"},
      {"--listen", &env.listen, "HOST:PORT at which programs open sessions, as env.listen"},
      {"--listen-key", &env.listen_key, "key for opening a session: env:NAME or file:PATH"},
      {"--open", &open, "anyone who reaches --listen may open sessions, without a key"}};
  flags.insert(flags.end(), more.begin(), more.end());
  guest.add_to(flags);
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags("troupe attach environment: takes episodes of a live run, "
                                "in this process, until it is detached, the run ends or Ctrl-C. "
                                "Limits of episodes are the run's.",
                                flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY(check_name(name));
  const int forms =
      !env.python.empty() + !env.command.empty() + !env.openenv.empty() + !env.listen.empty();
  if (forms != 1) {
    return fail(ErrorCode::kConfig,
                "give exactly one of --python FILE, --command WORDS, --openenv URL, --listen "
                "HOST:PORT");
  }
  env.confined = !unconfined;
  env.open = open;
  if (!env.listen.empty() && env.open == !env.listen_key.empty()) {
    return fail(ErrorCode::kConfig,
                "--listen wants --listen-key, the key with which programs open sessions, or "
                "--open, which lets in anyone who reaches that address");
  }
  if (!env.python.empty()) {
    std::error_code error;
    const auto file = std::filesystem::canonical(std::string(env.python), error);
    if (error)
      return fail(ErrorCode::kConfig, "--python: there is no file " + std::string(env.python));
    env.python = file.string();
  }
  NodePlace place;
  place.join = join;
  place.self.name = "node/" + name;
  place.self.kinds = {actors::kAttachedEnvironment};
  place.one_run = !guest.any_run;
  place.wait_s = guest.wait_s;
  place.prepare = [own](session::RoleLoader& loader) { loader.bring_environment(own); };
  return join_as_node(place);
}

Result<void> run_detach_environment(cli::Words words) {
  session::JoinFlags join;
  std::string name;
  double wait_s = 60;
  std::vector<cli::Flag> flags = join.flags();
  flags.push_back({"--name", &name, "name of the environment"});
  flags.push_back({"--wait-s", &wait_s,
                   "seconds to finish its episodes; the rest run again elsewhere", false, 0,
                   86400});
  TROUPE_TRY_ASSIGN(outcome,
                    cli::parse_flags("troupe detach environment: takes an attached environment "
                                     "out of a run, and its process ends",
                                     flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY(check_name(name));
  TROUPE_TRY(drain_node(join, name, wait_s));
  cli::say("environment " + name + " has left the run");
  return {};
}

}  // namespace troupe::app
