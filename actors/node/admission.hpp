// Who may come in from another process, and under which names: nodes by a pass that is good once,
// roles of a node that is in by having been started there. Asked on the transport's threads, told
// on the company's strand; thread-safe. Bounds: kPasses_max passes that nobody used yet.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace troupe::actors {

class Admission {
 public:
  // A new pass, 256 random bits in hex. The oldest unused ones lapse beyond the bound.
  std::string issue_pass();

  // Error: kInvalidArgument saying what is wrong with the name, the pass or the origin.
  core::Result<void> admit(const wire::Hello& hello, const std::string& origin);

  // A role that was started on that node may introduce itself, with this epoch.
  void expect(const std::string& node, const std::string& role, std::uint64_t epoch);
  // Any role of that kind ("reward" for "reward/...") of that node may: it brings its own.
  void allow_kind(const std::string& node, const std::string& kind);
  // The node is gone; its origin and its roles mean nothing any more.
  void forget(const std::string& node);

  // The node behind an origin; "" when none is.
  std::string node_of(const std::string& origin) const;

 private:
  struct Guest {
    std::string origin;
    std::map<std::string, std::uint64_t> expected;  // epoch by role
    std::set<std::string> kinds;                    // of roles that it brings
  };
  core::Result<void> admit_node(const wire::Hello& hello, const std::string& origin);
  core::Result<void> admit_role(const wire::Hello& hello, const std::string& origin);

  mutable std::mutex mutex_;
  std::deque<std::string> passes_;
  std::map<std::string, Guest> guests_;             // by node name
  std::map<std::string, std::string> last_passes_;  // by node name: a broken link may be made again
};

}  // namespace troupe::actors
