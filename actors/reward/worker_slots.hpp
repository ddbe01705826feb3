// The worker processes of a Python reward or environment: starts them when there is work, replaces
// those that ended or have had their calls, and finds one that has room. Lives on the strand of its
// owner; processes are started on the device queue. Bound: `workers` processes.
#pragma once

#include "actors/reward/python_worker.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::reward {

class WorkerSlots {
 public:
  struct Options {
    std::string name = "reward worker";  // of a process, in errors
    std::string where;                   // in errors: "reward function FILE"
    std::vector<std::string> command;
    std::size_t workers = 1;
    std::uint64_t calls_max = 0;  // calls of a worker before it is replaced; 0: no limit
    // Before a worker that died is replaced; doubles with each loss of one that answered nothing,
    // up to pause_max.
    core::Duration pause_min{}, pause_max{};
    core::Duration pause_forget{};  // after the last loss the pauses begin anew
    core::Duration failed_pause{};  // after a start that failed, while others are alive
    WorkerProcess::Prints prints = WorkerProcess::Prints::kInherited;
    std::function<core::Result<void>(const nlohmann::json&)> greeted;  // reads the first line
    std::function<void()> changed;  // a worker ended, started or could not be started
    std::function<void(const std::string&)> lost;  // says how a worker ended by itself
    std::function<void(std::string)> printed;
  };

  explicit WorkerSlots(Options options) : options_(std::move(options)), slots_(options_.workers) {}

  // Takes the first worker, which has been started and has said its first line.
  void begin(const RoleContext& context, std::unique_ptr<WorkerProcess> first);
  // Starts workers in the empty slots, and in those of workers that have had their calls.
  void fill();
  // The worker with the fewest batches (or by `load`) that has room; null: none.
  std::shared_ptr<PythonWorker> least(
      const std::function<bool(const PythonWorker&)>& has_room,
      const std::function<std::size_t(const PythonWorker&)>& load = nullptr) const;
  bool any_alive() const;  // or being started

  std::uint64_t starts() const noexcept { return starts_; }
  std::uint64_t failed_starts() const noexcept { return failed_starts_; }
  double longest_pause_s() const;  // the present pause before a dead worker is replaced
  const std::string& start_error() const noexcept { return start_error_; }

 private:
  struct Slot {
    std::shared_ptr<PythonWorker> worker;
    bool starting = false;
    core::TimePoint retry{};  // not before
    core::Duration pause{};
    core::TimePoint lost{};
  };

  async::task<void> start(Slot* slot);
  async::task<core::Result<std::shared_ptr<PythonWorker>>> started(Slot* slot);
  void run(Slot* slot, const std::shared_ptr<PythonWorker>& worker);
  void ended(Slot* slot, const PythonWorker& worker);

  const Options options_;
  RoleContext context_;
  std::vector<Slot> slots_;
  std::uint64_t starts_ = 0, failed_starts_ = 0;
  std::string start_error_;
};

}  // namespace troupe::actors::reward
