// The node processes that a company starts on its own host. Used on the company's strand; calls
// return at once. They die with the process that started them.
#pragma once

#include "runtime/core/result.hpp"

#include <string>
#include <vector>

namespace troupe::actors {

class NodeLauncher {
 public:
  virtual ~NodeLauncher() = default;
  virtual core::Result<void> start(const std::string& node,
                                   const std::vector<std::string>& kinds,
                                   const std::string& pass) = 0;
  // SIGKILL. Its end shows in `exits`.
  virtual void kill(const std::string& node) = 0;

  struct Exit {
    std::string node;
    std::string cause;  // "was ended by signal 9 (Killed)"
  };
  // Processes that ended since the last call.
  virtual std::vector<Exit> exits() = 0;
  // 0 when it does not run.
  virtual int pid(const std::string& node) const = 0;
};

}  // namespace troupe::actors
