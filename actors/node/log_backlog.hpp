// The last lines that a process has printed and its company does not have yet. Safe on any thread;
// `put` never waits for the company. Owned by the process. Bound: kLogKept_bytes_max; beyond that
// the oldest lines are dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::node {

class LogBacklog {
 public:
  // Adds the lines of a text. A line is cut to kLogLine_bytes_max.
  void put(std::string_view text);

  struct Batch {
    std::uint64_t first = 0;    // number of the first line, counted from 0
    std::uint64_t dropped = 0;  // lines before it that were dropped since the last that arrived
    std::vector<std::string> lines{};
  };
  // The oldest lines, as many as fit a message. They stay until `arrived`.
  Batch next() const;
  // The company has all lines before this number.
  void arrived(std::uint64_t number);

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
  std::uint64_t first_ = 0;    // number of the oldest line that is kept
  std::uint64_t arrived_ = 0;  // the company has the lines before this number, or they were dropped
};

}  // namespace troupe::actors::node
