// A network that misbehaves on purpose, and the same way again for the same seed: frames are
// delayed (so they overtake each other), dropped, doubled, held by a frozen role or lost with a
// crashed one. Same Transport as everywhere else. Single-threaded, on a VirtualTime; outlives its
// roles. The trace names every frame and its fate; a failing test prints seed and trace.
#pragma once

#include "runtime/cluster/endpoint.hpp"
#include "runtime/core/rng.hpp"
#include "tests/sim/virtual_time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cluster::sim {

struct Faults {
  core::Duration delay_min = std::chrono::microseconds(50);
  core::Duration delay_max = std::chrono::milliseconds(2);
  double drop = 0;                                         // chance that a frame never arrives
  double duplicate = 0;                                    // chance that it arrives twice
  core::Duration notice = std::chrono::milliseconds(500);  // from a crash until peers are told
};

// Carries frames in place of the network's own faults: a world of hosts, processes and links.
class Carrier {
 public:
  virtual ~Carrier() = default;
  // A frame of the role `from`. Whoever carries it calls SimNetwork::hand_over when it arrives.
  // Returns the epoch of `to`. Error kPeerLost: the role knows no way to `to`.
  virtual core::Result<std::uint64_t> carry(const Endpoint& from,
                                            const PeerName& to,
                                            const wire::Frame& frame) = 0;
  // That role has stopped.
  virtual void ended(const Endpoint& role) = 0;
};

class SimNetwork {
 public:
  SimNetwork(VirtualTime& time, std::uint64_t seed, Faults faults);
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;
  ~SimNetwork();

  // A role's place, on a strand of its own. A name may come back after a crash, with a higher
  // epoch; that its predecessor is gone is then noticed at once. Error: kInvalidArgument, name in
  // use.
  core::Result<std::shared_ptr<Endpoint>> join(Identity identity);

  void set_faults(Faults faults) { faults_ = faults; }
  // With a carrier, which outlives the roles, names may be there twice: the carrier knows who is
  // who.
  void set_carrier(Carrier& carrier) { carrier_ = &carrier; }
  std::shared_ptr<Endpoint> join_at(Identity identity, async::Executor strand);
  // Ends such a role without a word. Nobody is told: that is the carrier's business.
  static void vanish(Endpoint& endpoint);
  // Gives a frame to the role at that endpoint, which may refuse it.
  void hand_over(const PeerName& from,
                 const std::shared_ptr<Endpoint>& to,
                 const wire::Frame& frame);
  // The role ends without a word; what it had sent still arrives.
  void crash(const PeerName& name);
  // A frozen role gets its frames when it thaws.
  void freeze(const PeerName& name);
  void thaw(const PeerName& name);
  // No frame passes between the two, either way.
  void cut(const PeerName& a, const PeerName& b);
  void heal();

  // Calls and requests that are still open anywhere; 0 once everything is quiet.
  std::size_t open() const;
  const std::vector<std::string>& trace() const noexcept { return trace_; }
  core::Rng& rng() noexcept { return rng_; }

 private:
  class Member;
  enum class Way { kRequest, kReply };

  void route(Way way, const PeerName& from, const PeerName& to, const wire::Frame& frame);
  void deliver(Way way, const PeerName& from, const PeerName& to, const wire::Frame& frame);
  void tell_lost(const PeerName& name);
  void tell(const PeerName& whom, const PeerName& lost, const std::string& why);
  void note(Way way,
            const PeerName& from,
            const PeerName& to,
            const wire::Frame& frame,
            const char* fate);

  VirtualTime& time_;
  core::Rng rng_;
  Faults faults_;
  Carrier* carrier_ = nullptr;
  std::map<PeerName, std::shared_ptr<Member>> members_;
  std::vector<std::shared_ptr<Member>> all_;  // those that crashed too, until the end
  std::set<PeerName> unnoticed_;              // crashed, and peers not told yet
  std::set<std::pair<PeerName, PeerName>> cuts_;
  std::map<PeerName, std::vector<std::function<void()>>> frozen_;  // frames held back
  std::vector<std::string> trace_;
};

}  // namespace troupe::cluster::sim
