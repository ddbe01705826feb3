// The loggers of a run: a side process for each service, started again with pauses when it ends,
// freezes or fails. Nothing that happens to them reaches the run, but for a note. A thread of its
// own looks after them; owned by the run's life.
#pragma once

#include "apps/loggers/side_process.hpp"
#include "runtime/config/train_config.hpp"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace troupe::loggers {

// The services that a configuration names, with its settings.
std::vector<LoggerSettings> loggers_of(const config::TrainConfig& config,
                                       const std::filesystem::path& run);

class RunLoggers {
 public:
  // `note` is called on this object's thread, and outlives it.
  RunLoggers(std::vector<LoggerSettings> settings, SideProcess::Note note);
  // Gives them until `deadline` for the last rows, then ends them and says what is missing.
  void finish(core::TimePoint deadline);
  ~RunLoggers();

 private:
  struct Logger {
    LoggerSettings settings;
    std::unique_ptr<SideProcess> process;
    core::TimePoint next_start;
    core::Duration pause;
    std::uint64_t sent = 0, losses = 0;
    bool finished = false, told_end = false;
    std::set<std::string> noted;

    // The logger failed more than once and never sent a row, as without its package: an ended run
    // does not wait for it.
    bool hopeless() const { return !process && losses > 1 && sent == 0; }
  };

  void watch();
  void look_after(Logger& logger);
  void lost(Logger& logger, const std::string& how);
  void say_once(Logger& logger, const std::string& text);
  void say_end(Logger& logger);

  const SideProcess::Note note_;
  std::vector<Logger> loggers_;
  std::atomic<bool> ending_{false};
  std::atomic<core::Duration::rep> deadline_{0};
  std::thread thread_;
};

}  // namespace troupe::loggers
