// The connections between the processes of a world and the links between its hosts. A connection
// keeps the order of what it carries and loses nothing while it stands, as TCP does: a link that is
// cut holds the bytes back until it heals or until the connection has been silent for too long.
// When a connection ends, each side is told as soon as it can know.
#pragma once

#include "runtime/core/rng.hpp"
#include "tests/sim/world/census.hpp"
#include "tests/sim/world/process.hpp"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::sim {

class Links final : public cluster::sim::Carrier {
 public:
  // `lost`: the process `at` has noticed that its connection to `of` is gone.
  using Lost = std::function<void(Process& at, Process& of, const std::string& why)>;
  Links(VirtualTime& time, SimNetwork& network, std::uint64_t seed, Census& census, Lost lost)
      : time_(time), network_(network), rng_(seed), census_(census), lost_(std::move(lost)) {}

  // A place for a role of that process.
  std::shared_ptr<cluster::Endpoint> join(Process& process, cluster::Identity identity);
  // From now on the roles of the two may call each other.
  void connect(Process& a, Process& b);
  bool connected(const Process& a, const Process& b) const;
  // Calls `what` at the other end, after all that was sent before; never when they are not
  // connected.
  void pass(Process& from, Process& to, std::function<void()> what);
  // The process has ended, and so have its connections.
  void drop(Process& process);
  // Ends one connection.
  void sever(Process& a, Process& b, const std::string& why);

  // ---- faults between hosts, in one direction
  void cut(const std::string& from, const std::string& to, bool cut);
  void slow(const std::string& from, const std::string& to, double bytes_per_s);  // 0: fast again
  // From now on this share of requests arrives a second time, some time later.
  void repeat(double share) { repeated_ = share; }
  bool open(const std::string& from, const std::string& to) const {
    return !cuts_.contains({from, to});
  }
  // How long so many bytes take.
  core::Duration transfer(const std::string& from, const std::string& to, double bytes) const;

  // False: the process `at` no longer hears that role of `of`, whose requests are answered with
  // kPeerLost.
  std::function<bool(const Process& at, const Process& of, const cluster::Identity& from)> hears;
  // The process that plays that role as `from` knows it, null for none; nothing: whoever it is
  // connected to.
  std::function<std::optional<const Process*>(const Process& from, const std::string& role)> finds;
  // A role of a living process has ended; called when `at` hears of it.
  std::function<void(Process& at, Process& of, const cluster::Identity& role)> role_ended;
  std::function<void(const std::string& line)> trace;

  core::Result<std::uint64_t> carry(const cluster::Endpoint& from,
                                    const cluster::PeerName& to,
                                    const wire::Frame& frame) override;
  void ended(const cluster::Endpoint& role) override;

 private:
  struct Connection {
    std::array<Process*, 2> ends{};
    bool up = true;
    struct Way {
      core::TimePoint last{};  // when the newest frame arrives
      std::deque<std::pair<std::size_t, std::function<void()>>> held;
      std::vector<cluster::Identity> ended;  // roles of this end; the other has not heard of it
    };
    std::array<Way, 2> ways;  // from each end
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  void end(const ConnectionPtr& connection, const std::string& why);
  void tell(const ConnectionPtr& connection, int way, const std::string& why);
  void send(const ConnectionPtr& connection,
            int way,
            std::size_t bytes,
            std::function<void()> arrive);
  void hold(const ConnectionPtr& connection,
            int way,
            std::size_t bytes,
            std::function<void()> arrive);
  void arrive(const ConnectionPtr& connection,
              int way,
              const std::shared_ptr<const cluster::Endpoint>& from,
              const std::shared_ptr<cluster::Endpoint>& to,
              const wire::Frame& frame);
  void note(const cluster::Identity& from, const std::string& to, const wire::Frame& frame) const;
  core::Duration delay(const Process& from, const Process& to);

  VirtualTime& time_;
  SimNetwork& network_;
  core::Rng rng_;
  Census& census_;
  const Lost lost_;
  std::vector<ConnectionPtr> connections_;  // those that stand
  std::set<std::pair<std::string, std::string>> cuts_;
  std::map<std::pair<std::string, std::string>, double> speeds_;
  std::map<const cluster::Endpoint*, Process*> owners_;
  double repeated_ = 0;
};

}  // namespace troupe::sim
