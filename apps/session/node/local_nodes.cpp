#include "apps/session/node/local_nodes.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::app {
namespace {

using core::ErrorCode;

// Says how a node's process ended. For SIGKILL it adds the usual causes: a user, or the kernel when
// memory is short.
std::string told(int wait_status) {
  const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  return core::how_it_ended(wait_status) + (killed ? ", by hand or for want of memory" : "");
}

}  // namespace

LocalNodes::LocalNodes(std::string socket, std::filesystem::path log_folder)
    : socket_(std::move(socket)), log_folder_(std::move(log_folder)) {}

core::Result<void> LocalNodes::start(const std::string& node,
                                     const std::vector<std::string>& kinds,
                                     const std::string& pass) {
  std::error_code error;
  std::filesystem::create_directories(log_folder_, error);
  const std::string name = node.substr(node.find('/') + 1);
  const std::filesystem::path log_file = log_folder_ / (name + ".log");
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || nothing < 0) {
    const std::string why = std::strerror(errno);
    if (log >= 0) ::close(log);
    return core::fail(ErrorCode::kResources, "cannot write " + log_file.string() + ": " + why);
  }
  std::string offered;
  for (const std::string& kind : kinds)
    offered += (offered.empty() ? "" : ",") + kind;
  core::ChildSpec spec;
  spec.words = {"troupe", "node", "--local", socket_, "--name", name, "--roles", offered};
  spec.this_program = true;
  spec.environment = core::merged_environment({"TROUPE_NODE_PASS=" + pass});
  spec.descriptors = {{nothing, 0}, {log, 1}, {log, 2}};
  auto child = core::ChildProcess::start("a process for " + node, std::move(spec));
  ::close(log);
  ::close(nothing);
  if (!child) return child.failure();
  nodes_.insert_or_assign(node, std::move(*child));
  return {};
}

void LocalNodes::kill(const std::string& node) {
  if (const auto found = nodes_.find(node); found != nodes_.end()) found->second.signal(SIGKILL);
}

std::vector<LocalNodes::Exit> LocalNodes::exits() {
  std::vector<Exit> ended;
  for (auto place = nodes_.begin(); place != nodes_.end();) {
    if (place->second.running()) {
      ++place;
    } else {
      ended.push_back({place->first, told(place->second.wait())});
      place = nodes_.erase(place);
    }
  }
  return ended;
}

}  // namespace troupe::app
