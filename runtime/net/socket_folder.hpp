// A temporary folder of mode 0700 for the Unix sockets of a process, with a path short enough for
// socket names: $TMPDIR/troupe-sockets-XXXXXX, or the same in /tmp. The object holds a lock on the
// folder (so that programs that clean temporary folders leave it alone) and removes the folder when
// it is destroyed. The folder of a killed process is unlocked; the next `make` removes it.
#pragma once

#include "runtime/net/socket.hpp"

#include <string>

namespace troupe::net {

class SocketFolder {
 public:
  // Error: kResources, naming the folder in which it could not be made.
  static core::Result<SocketFolder> make();
  SocketFolder(SocketFolder&&) noexcept = default;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const noexcept { return path_; }
  std::string socket(const std::string& name) const { return path_ + "/" + name; }

 private:
  SocketFolder(std::string path, OwnedFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  OwnedFd lock_;  // empty once moved from
};

}  // namespace troupe::net
