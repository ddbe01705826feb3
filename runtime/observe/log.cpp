#include "runtime/observe/log.hpp"

#include "runtime/observe/terminal_text.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <string>
#include <utility>

namespace troupe::observe {

struct Log::State {
  std::shared_ptr<spdlog::logger> file;  // null when nothing is kept
  Show show;
};

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

core::Result<Log> Log::open(const std::filesystem::path& file, Show show) {
  auto state = std::make_unique<State>();
  state->show = std::move(show);
  if (!file.empty()) {
    try {
      auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
      state->file = std::make_shared<spdlog::logger>("troupe", std::move(sink));
      state->file->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
      state->file->flush_on(spdlog::level::info);
      // A full disk must not end a run because of its log.
      state->file->set_error_handler([](const std::string&) {});
    } catch (const spdlog::spdlog_ex& error) {
      return core::fail(
          core::ErrorCode::kResources,
          "cannot write the log: " + std::string(error.what()) + "; choose another --run.path");
    }
  }
  return Log(std::move(state));
}

void Log::write(LogLevel level, std::string_view message) {
  const std::string line = terminal_line(message, 4096);
  if (state_->file) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn,
                                                     spdlog::level::err};
    state_->file->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(line));
  }
  if (state_->show) state_->show(level, line);
}

}  // namespace troupe::observe
