// What the company has to say goes to whichever reporter is open; between two, to standard error.
// Safe on any thread. Owned by the command that trains.
#pragma once

#include "apps/session/run_reporter.hpp"

#include <cstdio>
#include <mutex>
#include <string>

namespace troupe::app {

class NoteLine {
 public:
  void attach(RunReporter* reporter) {
    const std::lock_guard lock(mutex_);
    reporter_ = reporter;
  }
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (reporter_ != nullptr) {
      reporter_->on_note(text);
    } else {
      std::fprintf(stderr, "%s\n", text.c_str());
    }
  }

 private:
  std::mutex mutex_;
  RunReporter* reporter_ = nullptr;
};

}  // namespace troupe::app
