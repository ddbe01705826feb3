// The log file of a run: time, level and one line a message. Safe on any thread. The one source
// that includes spdlog is log.cpp.
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
  // Appends to what is there. Error kResources: it cannot be written.
  static core::Result<Log> open(const std::filesystem::path& file);

  void info(std::string_view message);

 private:
  explicit Log(std::shared_ptr<spdlog::logger> file) : file_(std::move(file)) {}
  std::shared_ptr<spdlog::logger> file_;
};

}  // namespace troupe::observe
