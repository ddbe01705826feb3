// A folder of mode 0700 for a process's Unix sockets, with a path that is short enough for them:
// $TMPDIR/troupe-sockets-XXXXXX, or the same in /tmp. It is locked as long as this lives, which keeps
// those who clean such places away; it goes with its owner. What a process that was killed left
// behind has no lock and is removed by the next that makes a folder. Owned by whoever listens.
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
