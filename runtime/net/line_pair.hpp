// A pair of connected local sockets, one to write lines to and one to read lines from: what a child
// process is asked and answers. Coroutines on the given executor; one reader and one writer at a
// time. Bound: `line_max` bytes of a line that is read; a longer one is an error, or read in
// pieces.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/net/socket.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::net {

class LinePair {
 public:
  enum class Longer { kRefused, kCut };
  // `read`: bytes that were read already. Either descriptor may be none.
  LinePair(async::Executor executor,
           OwnedFd out,
           OwnedFd in,
           std::string read,
           std::size_t line_max,
           Longer longer = Longer::kRefused);
  LinePair(const LinePair&) = delete;
  LinePair& operator=(const LinePair&) = delete;
  ~LinePair();

  // The next line, without its end. Errors: kClosed at the end of the connection, or after close();
  // kData for a line that is longer than the bound.
  async::task<core::Result<std::string>> read();
  // Writes bytes, which may be several lines. Error: kClosed.
  async::task<core::Result<void>> write(std::string bytes);
  // Ends the read and the write that are under way.
  void close();

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
  std::string read_;  // what follows the last line
  const std::size_t line_max_;
  const Longer longer_;
};

}  // namespace troupe::net
