// Passes on what a child process prints, line by line, at most kPrintedLines_max a second: the rest
// of a second is counted, and said with the next line. Owned by one role, on its strand.
#pragma once

#include "actors/environment/limits.hpp"
#include "runtime/async/deadline.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace troupe::actors::environment {

class PrintedLines {
 public:
  // `from`: in front of each line.
  PrintedLines(std::string from, std::function<void(const std::string&)> say)
      : from_(std::move(from)), say_(std::move(say)) {}

  void operator()(const std::string& line, core::TimePoint now) {
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      said_ = 0;
    }
    if (said_ == limits::kPrintedLines_max) {
      ++left_out_;
      return;
    }
    ++said_;
    if (!say_) return;
    if (const std::uint64_t more = std::exchange(left_out_, 0); more > 0) {
      say_(from_ + ": (" + std::to_string(more) + " lines left out)");
    }
    say_(from_ + ": " + line);
  }

 private:
  const std::string from_;
  const std::function<void(const std::string&)> say_;
  core::TimePoint second_{};
  std::uint64_t said_ = 0, left_out_ = 0;
};

}  // namespace troupe::actors::environment
