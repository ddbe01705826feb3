// The log file of a run: one line per message, with time and level. Safe on any thread. Only
// log.cpp includes spdlog.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <memory>
#include <string_view>

namespace spdlog {
class logger;
}

namespace troupe::observe {

class Log {
 public:
  // Opens `file` for appending. Error kResources: it cannot be written.
  static core::Result<Log> open(const std::filesystem::path& file);

  // Writes the message as one line without control characters, cut to 4096 characters.
  void info(std::string_view message);

 private:
  explicit Log(std::shared_ptr<spdlog::logger> file) : file_(std::move(file)) {}
  std::shared_ptr<spdlog::logger> file_;
};

}  // namespace troupe::observe
