#include "apps/loggers/run_loggers.hpp"

#include "apps/loggers/limits.hpp"
#include "runtime/core/shell_word.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::loggers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kNotes_max = 5;
constexpr std::chrono::milliseconds kLook{200};

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : std::to_string(count) + " times";
}

}  // namespace

std::vector<LoggerSettings> loggers_of(const config::TrainConfig& config,
                                       const std::filesystem::path& run) {
  std::vector<LoggerSettings> out;
  const auto& logger = config.logger;
  for (const auto& [name, wanted] :
       {std::pair{"wandb", logger.wandb}, {"mlflow", logger.mlflow}, {"trackio", logger.trackio}}) {
    if (!wanted) continue;
    out.push_back({name, run, true, logger.project, logger.run_name, logger.group, logger.org,
                   logger.mlflow_uri});
  }
  return out;
}

RunLoggers::RunLoggers(std::vector<LoggerSettings> settings, SideProcess::Note note)
    : note_(std::move(note)) {
  for (LoggerSettings& one : settings) {
    Logger logger;
    logger.settings = std::move(one);
    logger.next_start = Clock::now();
    logger.pause = limits::kLoggerPause_min;
    loggers_.push_back(std::move(logger));
  }
  if (!loggers_.empty()) thread_ = std::thread([this] { watch(); });
}

RunLoggers::~RunLoggers() {
  finish(Clock::now());
}

void RunLoggers::finish(core::TimePoint deadline) {
  if (!thread_.joinable()) return;
  deadline_ = deadline.time_since_epoch().count();
  ending_ = true;
  thread_.join();
}

void RunLoggers::watch() {
  for (;;) {
    const bool ending = ending_;
    for (Logger& logger : loggers_)
      look_after(logger);
    const bool all = std::ranges::all_of(
        loggers_, [](const Logger& logger) { return logger.finished || logger.hopeless(); });
    const bool late = ending && Clock::now().time_since_epoch().count() >= deadline_;
    if (ending && (all || late)) break;
  }
  for (Logger& logger : loggers_)
    say_end(logger);
}

void RunLoggers::look_after(Logger& logger) {
  const bool ending = ending_;
  if (logger.finished) {
    if (!ending) std::this_thread::sleep_for(kLook);
    return;
  }
  if (!logger.process) {
    if (Clock::now() < logger.next_start && !(ending && !logger.told_end)) {
      std::this_thread::sleep_for(kLook);
      return;
    }
    auto started = SideProcess::start(logger.settings);
    if (!started) return lost(logger, started.error().message);
    logger.process = std::make_unique<SideProcess>(std::move(*started));
    logger.told_end = false;
  }
  if (ending && !logger.told_end) {
    logger.process->end();
    logger.told_end = true;
  }
  logger.process->listen(kLook, [&](const std::string& text) { say_once(logger, text); });
  if (logger.process->finished()) {
    logger.sent += logger.process->sent();
    logger.finished = true;
  } else if (!logger.process->running()) {
    logger.process->listen(core::Duration::zero(),
                           [&](const std::string& text) { say_once(logger, text); });
    lost(logger, logger.process->how_it_ended());
  } else if (logger.process->frozen()) {
    logger.process->kill();
    lost(logger, "did not go on");
  }
}

void RunLoggers::lost(Logger& logger, const std::string& how) {
  if (logger.process) {
    if (logger.process->sent() > 0) logger.pause = limits::kLoggerPause_min;
    logger.sent += logger.process->sent();
    logger.process.reset();
  }
  if (logger.losses++ == 0) {
    say_once(logger, how +
                         "; the run goes on, and the logger is started again until it works "
                         "(RUN/loggers/" +
                         logger.settings.logger + ".log)");
  }
  logger.next_start = Clock::now() + logger.pause;
  logger.pause = std::min<core::Duration>(2 * logger.pause, limits::kLoggerPause_max);
}

void RunLoggers::say_once(Logger& logger, const std::string& text) {
  if (logger.noted.size() >= kNotes_max || !logger.noted.insert(text).second) return;
  note_("logger " + logger.settings.logger + ": " + text);
}

void RunLoggers::say_end(Logger& logger) {
  const std::string name = logger.settings.logger;
  if (logger.process) {
    if (!logger.finished) logger.sent += logger.process->sent();
    logger.process->kill();
  }
  std::string text = "logger " + name + ": " + std::to_string(logger.sent) + " rows sent";
  if (logger.losses > 0) text += ", lost " + times(logger.losses);
  if (!logger.finished) {
    text += ", the last rows are missing; `troupe log " +
            core::shell_word(logger.settings.run.string()) + " --to " + name + "` sends them";
  }
  if (!logger.finished || logger.losses > 0) note_(text);
}

}  // namespace troupe::loggers
