// The logs of a run's nodes, one file each: RUN/nodes/NAME.log. A process that the head started
// writes to its own (output_keeper.hpp); the lines of a node that joined come in messages and are
// written here, by a thread of its own, so that no disk delays the company.
//
// Bounds, a node: those of bounded_log.hpp. In all: kNodeLogs_max names, kWaiting_bytes_max not yet
// written. What exceeds them is dropped, counted, and said in one line of the file. Used on the
// company's strand.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "apps/session/node/bounded_log.hpp"
#include "runtime/core/clock.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace troupe::session {

class NodeLogs {
 public:
  explicit NodeLogs(std::filesystem::path folder);
  ~NodeLogs();  // writes what waits

  // `pid`: of the node's process; lines that it has sent before are left out. Returns at once.
  void put(actors::PutLog lines, std::uint32_t pid, core::TimePoint now);

  // What the node has printed last, at most kLastLines_max lines, oldest first. Reads the end of
  // the file of a node that sends no lines; waits a moment for the last words of one that ends.
  std::vector<std::string> last_lines(const std::string& node) const;

  std::filesystem::path file_of(const std::string& node) const;

 private:
  struct Source {  // a node that sends lines
    std::uint32_t pid = 0;
    std::uint64_t next = 0;  // number of the next line of that process
    BoundedLines lines;
    std::deque<std::string> last;
  };
  struct Text {
    std::filesystem::path file;
    std::string text;
  };
  bool write_later(Text text);
  void write_all(std::stop_token stop);

  const std::filesystem::path folder_;
  std::map<std::string, Source> sources_;

  std::mutex mutex_;  // protects the rest
  std::condition_variable_any wake_;
  std::deque<Text> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::jthread writer_;
};

}  // namespace troupe::session
