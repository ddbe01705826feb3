// The program's log: levels, time, one line a message, into a file and, for warnings and errors, to
// whoever shows them (the progress view in a run). Owned by the command; safe on any thread. The
// one source that includes spdlog is log.cpp.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

namespace troupe::observe {

enum class LogLevel { kInfo, kWarning, kError };

class Log {
 public:
  // Gets one line (level and message, no time, no newline); called on the thread that logs.
  using Show = std::function<void(LogLevel, std::string_view)>;

  // `file` may be empty: then nothing is kept. Appends to what is there.
  static core::Result<Log> open(const std::filesystem::path& file, Show show);

  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  ~Log();

  void info(std::string_view message) { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) { write(LogLevel::kWarning, message); }
  void error(std::string_view message) { write(LogLevel::kError, message); }
  void write(LogLevel level, std::string_view message);

 private:
  struct State;
  explicit Log(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::observe
