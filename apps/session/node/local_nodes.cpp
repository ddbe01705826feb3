#include "apps/session/node/local_nodes.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/session/node/output_keeper.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace troupe::session {
namespace {

// The processes to kill when this one is ended at once by a second signal, whose handler may use
// nothing but lock-free atomics.
constexpr std::size_t kForced_max = 512;
std::array<std::atomic<pid_t>, kForced_max> forced{};

void kill_all_now() {
  for (const auto& pid : forced)
    if (const pid_t one = pid.load(); one > 0) ::kill(-one, SIGKILL);
}

void note_pid(pid_t before, pid_t after) {
  for (auto& pid : forced) {
    pid_t expected = before;
    if (pid.compare_exchange_strong(expected, after)) return;
  }
}

pid_t pid_of(const core::ChildProcess& child) {
  return child.pid();
}
pid_t pid_of(const OtherProcess& other) {
  return other.pid();
}
template <class Process>
pid_t pid_of_either(const Process& process) {
  return std::visit([](const auto& one) { return pid_of(one); }, process);
}

}  // namespace

LocalNodes::LocalNodes(std::string socket, const std::filesystem::path& folder, bool outlive)
    : socket_(std::move(socket)), folder_(std::filesystem::absolute(folder)), outlive_(outlive) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  cli::before_forced_end(&kill_all_now);
}

LocalNodes::~LocalNodes() {
  cli::before_forced_end(nullptr);
  for (auto& [name, node] : nodes_) {
    note_pid(pid_of_either(node.process), 0);
    std::visit([](auto& one) { one.kill(); }, node.process);
  }
  await_keepers();
}

// Keepers end when they have read all. A process that ended early had none.
void LocalNodes::await_keepers() {
  constexpr std::chrono::milliseconds kAll{1000}, kNone{50}, kLook{5};
  auto none = kNone;
  for (auto left = kAll; left.count() > 0 && none.count() > 0; left -= kLook) {
    keepers_ended_ += reap_keepers();
    if (keepers_ended_ >= started_) return;
    if (std::none_of(logs_.begin(), logs_.end(), &keeper_writes)) none -= kLook;
    std::this_thread::sleep_for(kLook);
  }
}

// The file of a node: "node/policy" and ".log" give RUN/nodes/policy.log.
std::filesystem::path LocalNodes::file(const std::string& node, const char* ending) const {
  return folder_ / (node.substr(node.find('/') + 1) + ending);
}

void LocalNodes::put(const std::string& node, Process process) {
  const pid_t pid = pid_of_either(process);
  note_pid(0, pid);
  nodes_.insert_or_assign(node, Node{std::move(process), MemoryKills(pid)});
}

void LocalNodes::end_others(const std::vector<actors::company::LocalNode>& wanted) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != ".pid") continue;
    const bool stays = std::any_of(wanted.begin(), wanted.end(), [&](const auto& node) {
      return file(node.name, ".pid") == it->path();
    });
    if (stays) continue;
    if (const auto other = OtherProcess::holder_of(it->path())) other->kill();
  }
}

core::Result<void> LocalNodes::start(const std::string& node,
                                     const std::vector<std::string>& kinds,
                                     const std::string& pass) {
  const std::filesystem::path log_file = file(node, ".log");
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || nothing < 0) {
    const int why = errno;
    if (log >= 0) ::close(log);
    return store::io_failure("write", log_file, why);
  }
  std::string offered;
  for (const std::string& kind : kinds)
    offered += (offered.empty() ? "" : ",") + kind;
  const std::filesystem::path pass_file = file(node, ".pass");
  core::ChildSpec spec;
  spec.words = {"troupe",           "node",   "--local",
                pass_file.string(), "--name", node.substr(node.find('/') + 1),
                "--roles",          offered};
  spec.this_program = true;
  spec.outlives_parent = outlive_;
  spec.descriptors = {{nothing, 0}, {log, 1}, {log, 2}};
  auto written = write_pass(pass_file, {socket_, pass});
  auto child = written ? core::ChildProcess::start("a process for " + node, std::move(spec))
                       : core::Result<core::ChildProcess>(written.failure());
  ::close(log);
  ::close(nothing);
  if (!child) return child.failure();
  put(node, std::move(*child));
  logs_.insert(log_file);
  ++started_;
  return {};
}

bool LocalNodes::adopt(const std::string& node,
                       const std::vector<std::string>&,
                       const std::string& pass) {
  auto other = OtherProcess::holder_of(file(node, ".pid"));
  if (!other) return false;
  if (!write_pass(file(node, ".pass"), {socket_, pass})) {
    other->kill();
    return false;
  }
  put(node, std::move(*other));
  return true;
}

void LocalNodes::kill(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Node& it = found->second;
  it.killed = true;
  if (auto* const child = std::get_if<core::ChildProcess>(&it.process)) child->signal(SIGKILL);
  if (auto* const other = std::get_if<OtherProcess>(&it.process)) other->kill();
}

// How a node's process ended. One that finds no memory or threads ends with the code for that; one
// that the kernel kills says nothing.
LocalNodes::Exit LocalNodes::exit_of(const std::string& name, Node& node) {
  auto* const child = std::get_if<core::ChildProcess>(&node.process);
  if (child == nullptr) return {name, "has ended"};
  const int status = child->wait();
  Exit exit{name, core::how_it_ended(status)};
  if (WIFEXITED(status) && WEXITSTATUS(status) == core::exit_status(ErrorCode::kResources))
    exit.code = ErrorCode::kResources;
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return exit;
  const MemoryKills::Verdict verdict =
      node.killed ? MemoryKills::Verdict{false, " of this run's head"} : node.kills.of_killed();
  exit.cause += verdict.text;
  if (verdict.memory) exit.code = ErrorCode::kResources;
  return exit;
}

std::vector<LocalNodes::Exit> LocalNodes::exits() {
  std::vector<Exit> ended;
  for (auto place = nodes_.begin(); place != nodes_.end();) {
    Node& node = place->second;
    if (std::visit([](auto& one) { return one.running(); }, node.process)) {
      node.kills.look();
      ++place;
      continue;
    }
    note_pid(pid_of_either(node.process), 0);
    ended.push_back(exit_of(place->first, node));
    place = nodes_.erase(place);
  }
  keepers_ended_ += reap_keepers();
  return ended;
}

}  // namespace troupe::session
