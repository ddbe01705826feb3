// What a control plane tells its session: which roles come and go, which ranks are back, and an
// error that must end it. Keeps what a session that is attached later must know. Any thread.
#pragma once

#include "runtime/core/error.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::actors::controller {
class Conductor;
}

namespace troupe::session {

class RunSession;

class SessionNews {
 public:
  // The session that is told from now on; false when it was ended at once. It outlives `detach`.
  bool attach(RunSession& session);
  void detach();

  void role_up(const std::string& role, std::uint64_t epoch);
  void role_lost(const std::string& role, const core::Error& cause);
  // Why the ranks of a gang shall start again with those that are back; "": they need not.
  void regroup(const std::string& why);
  // No session can go on. The first cause counts.
  void give_up(const core::Error& error);
  std::optional<core::Error> hopeless() const;

 private:
  void tell(std::function<void(actors::controller::Conductor&)> what) const;

  mutable std::mutex mutex_;
  RunSession* session_ = nullptr;
  std::optional<core::Error> hopeless_;
  std::string regroup_;
};

}  // namespace troupe::session
