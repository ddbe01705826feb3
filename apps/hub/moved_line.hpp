// How far a download or upload is: one line that is redrawn on a terminal, elsewhere a line for
// each tenth. On standard error; one thread.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstdint>
#include <string>

namespace troupe::hub {

// "269.1 MB", "512 bytes": decimal units, as hubs show them.
std::string size_text(std::uint64_t bytes);

class MovedLine {
 public:
  MovedLine(std::string name, std::uint64_t total);
  ~MovedLine();  // ends the line
  MovedLine(const MovedLine&) = delete;
  MovedLine& operator=(const MovedLine&) = delete;

  void show(std::uint64_t moved);
  // Prints a text above it.
  void note(const std::string& text);

 private:
  std::string name_;
  std::uint64_t total_;
  bool live_;
  bool drawn_ = false;
  std::uint64_t tenth_ = 0;
  std::uint64_t first_ = 0;
  core::TimePoint since_;
};

}  // namespace troupe::hub
