// What the actors and endpoints of one Exchange share: the directory, the hooks, the counters, and
// the list of actors that still live. Its only handles of the actor system are those in the
// directory, which `close` drops. Safe on any thread.
#pragma once

#include "runtime/cluster/caf/directory.hpp"
#include "runtime/cluster/caf/exchange.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::cluster::exchange {

// The exchange's own actors that have not ended, by name.
class Living {
 public:
  void add(caf::actor_id id, std::string name);
  void remove(caf::actor_id id);
  // Waits until all have ended, or until `end`; returns the names of those that have not.
  std::vector<std::string> wait_until(core::TimePoint end);

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<caf::actor_id, std::string> names_;
};

struct Core {
  explicit Core(Exchange::Hooks given) : hooks(std::move(given)) {}

  const Exchange::Hooks hooks;
  Directory directory;
  Living living;
  std::atomic<std::uint64_t> frames_in{0}, frames_out{0}, bytes_in{0}, bytes_out{0};
  std::atomic<std::uint64_t> refused{0}, stray{0};

  void count_in(const Parcel& parcel);
  void count_out(const wire::Frame& frame);
  // Counts a frame or introduction that was refused, and calls the `refused` hook.
  void refuse(const std::string& what);
  // Tells every local role that this peer is gone. The caller has freed the peer's name.
  void tell_lost(const PeerName& peer, std::uint64_t epoch, const core::Error& cause) const;
  // Like tell_lost, for a lost remote role; also calls the `lost` hook.
  void lose(const Binding& gone, const core::Error& cause) const;
};

}  // namespace troupe::cluster::exchange
