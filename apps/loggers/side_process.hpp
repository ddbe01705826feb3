// One side process: stock Python that sends a run's metrics to a service. Says how it goes; whoever
// owns it starts another when it has ended. One thread uses it.
#pragma once

#include "apps/side/side_program.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace troupe::loggers {

using side::Json;

// Where the rows go. Of what has no value, the run's own configuration is asked.
struct LoggerSettings {
  std::string logger;  // wandb, mlflow or trackio
  std::filesystem::path run;
  bool follow = false;  // until told that the run has ended; else log what is there now and end
  std::optional<std::string> project, name, group, org, uri;
};

class SideProcess {
 public:
  using Note = std::function<void(const std::string& text)>;

  // Errors and what packages print go to RUN/loggers/LOGGER.log. Errors: kResources, or
  // those of the run folder.
  static core::Result<SideProcess> start(const LoggerSettings& settings);
  SideProcess(SideProcess&&) = default;
  SideProcess& operator=(SideProcess&&) = default;

  // Reads what it says within `limit`; gives notes to `note`.
  void listen(core::Duration limit, const Note& note);
  // Tells it that the run has ended.
  void end();
  void kill() { program_.child().kill(); }

  bool running() { return program_.child().running(); }
  // True once the process has sent all rows and ended its part.
  bool finished() const { return finished_; }
  std::uint64_t sent() const { return sent_; }  // rows
  // Without a sign of life, or stuck in one call, for too long.
  bool frozen() const;
  std::string how_it_ended();

 private:
  explicit SideProcess(side::SideProgram program) : program_(std::move(program)) {}
  void take(const Json& json, const Note& note);

  side::SideProgram program_;
  core::Duration stuck_{};
  std::uint64_t sent_ = 0;
  bool finished_ = false;
};

}  // namespace troupe::loggers
