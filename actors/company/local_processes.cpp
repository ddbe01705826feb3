#include "actors/company/local_processes.hpp"

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "actors/data/limits.hpp"
#include "actors/protocol/limits.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::company {

LocalProcesses::LocalProcesses(std::vector<LocalNode> nodes,
                               NodeLauncher& launcher,
                               Admission& admission)
    : launcher_(launcher), admission_(admission) {
  for (LocalNode& node : nodes)
    processes_.push_back({std::move(node)});
}

LocalProcesses::Process* LocalProcesses::find(const std::string& node) {
  for (Process& process : processes_)
    if (process.node.name == node) return &process;
  return nullptr;
}

std::vector<LocalProcesses::Ended> LocalProcesses::collect(core::TimePoint now) {
  std::vector<Ended> ended;
  for (const NodeLauncher::Exit& exit : launcher_.exits()) {
    Process* const process = find(exit.node);
    if (process == nullptr) continue;
    const bool joined = process->joined;
    process->running = process->joined = false;
    if (!process->retired) ++process->failures;
    process->start_at = now + controller::limits::kRestartAfter *
                                  (1 << std::min<std::uint64_t>(process->failures, 5));
    ended.push_back(
        {exit.node, exit.cause, exit.code, joined, process->failures > limits::kRestarts_max});
  }
  return ended;
}

std::vector<std::string> LocalProcesses::kill_late(core::TimePoint now) {
  std::vector<std::string> late;
  for (const Process& process : processes_) {
    const core::Duration patience = process.adopted ? core::Duration(limits::kAdoption)
                                                    : core::Duration(actors::limits::kNodeStart);
    if (!process.running || process.joined || now - process.start_at <= patience) continue;
    launcher_.kill(process.node.name);
    late.push_back(process.node.name);
  }
  return late;
}

core::Result<void> LocalProcesses::start_due(core::TimePoint now) {
  for (Process& process : processes_) {
    if (process.running || process.retired || now < process.start_at) continue;
    process.adopted =
        !std::exchange(process.sought, true) &&
        launcher_.adopt(process.node.name, process.node.kinds, admission_.issue_pass());
    if (!process.adopted) {
      auto started =
          launcher_.start(process.node.name, process.node.kinds, admission_.issue_pass());
      if (!started) process.start_at = now + data::limits::kDiskPause_min;
      if (!started) return started;
    }
    process.running = true;
    process.start_at = now;
  }
  return {};
}

bool LocalProcesses::has(const std::string& node) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) {
    return process.node.name == node && (process.running || !process.retired);
  });
}

void LocalProcesses::retire(const std::string& node) {
  Process* const process = find(node);
  if (process == nullptr) return;
  process->retired = true;
  if (process->running && !process->joined) launcher_.kill(node);
}

void LocalProcesses::joined(const std::string& node) {
  Process* const process = find(node);
  if (process == nullptr) return;
  process->joined = true;
  process->failures = 0;
}

void LocalProcesses::kill(const std::string& node) {
  if (has(node)) launcher_.kill(node);
}

void LocalProcesses::kill_unjoined() {
  for (const Process& process : processes_)
    if (process.running && !process.joined) launcher_.kill(process.node.name);
}

bool LocalProcesses::any_running() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.running; });
}

}  // namespace troupe::actors::company
