// A folder of mode 0700 for a process's Unix sockets, with a path that is short enough for them:
// $TMPDIR/troupe-sockets-XXXXXX, or the same in /tmp. It is locked while this lives, which keeps
// programs that clean temporary folders away, and is removed at the end. A folder left by a killed
// process has no lock; the next process that makes a folder removes it. Owned by whoever listens.
#pragma once

#include "runtime/net/socket.hpp"

#include <string>

namespace troupe::net {

class SocketFolder {
 public:
  // Error: kResources naming the place.
  static core::Result<SocketFolder> make();
  SocketFolder(SocketFolder&&) noexcept = default;
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder();

  const std::string& path() const noexcept { return path_; }
  std::string socket(const std::string& name) const { return path_ + "/" + name; }

 private:
  SocketFolder(std::string path, OwnedFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  OwnedFd lock_;  // none: moved from
};

}  // namespace troupe::net
