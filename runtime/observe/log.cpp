#include "runtime/observe/log.hpp"

#include "runtime/observe/terminal_text.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <string>
#include <utility>

namespace troupe::observe {

core::Result<Log> Log::open(const std::filesystem::path& file) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    auto logger = std::make_shared<spdlog::logger>("troupe", std::move(sink));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    logger->flush_on(spdlog::level::info);
    // A full disk must not end a run because of its log.
    logger->set_error_handler([](const std::string&) {});
    return Log(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    return core::fail(core::ErrorCode::kResources,
                      "cannot write the log: " + std::string(error.what()),
                      "choose another --run.path");
  }
}

void Log::info(std::string_view message) {
  file_->log(spdlog::level::info, spdlog::string_view_t(terminal_line(message, 4096)));
}

}  // namespace troupe::observe
