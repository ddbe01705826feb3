// A side process: stock Python that runs a text of the program's own (side_common.py in front of
// it) and says what it does in lines of JSON. Whoever uses it knows what the lines mean. One
// thread.
#pragma once

#include "runtime/core/child_process.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::side {

using Json = nlohmann::json;

class SideProgram {
 public:
  struct Start {
    std::string what;  // in errors: "a logger"
    const char* text;  // of Python
    Json job;          // its settings
    std::size_t line_bytes_max;
    std::vector<std::string> environment{};  // NAME=value, beside ours
    int errors = -1;  // descriptor of its standard error; -1: that of this process
  };

  // Error: kResources.
  static core::Result<SideProgram> start(const Start& start);

  // Reads what it says, waiting up to `limit` for the beginning; an unfinished line may have up to
  // line_bytes_max.
  void listen(core::Duration limit);
  // The next object that it has said; nothing: none is whole yet. Other lines are passed over.
  std::optional<Json> next();
  // It has closed its output.
  bool is_over() const { return !out_; }
  // What it has begun has more than line_bytes_max, and nothing more is read before it is dropped.
  bool has_endless_line() const { return pending_.size() > line_bytes_max_; }
  void drop_line() { pending_.clear(); }
  // Since the latest object, or the start.
  core::Duration silence() const;

  void say(std::string_view line);
  // Ends its input.
  void end_input() { in_ = core::OwnedFd(); }
  bool has_input() const { return static_cast<bool>(in_); }
  core::ChildProcess& child() { return child_; }
  // Why it has ended, for which it waits: kResources if there is no python3, else kPeerLost.
  core::Failure lost();

 private:
  SideProgram() = default;

  core::ChildProcess child_;
  std::string what_;
  core::OwnedFd in_, out_;
  std::size_t line_bytes_max_ = 0;
  std::string pending_;
  core::TimePoint heard_;
};

}  // namespace troupe::side
