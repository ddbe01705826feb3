// Ways, delays, and the ends of connections.
#include "tests/sim/world/links.hpp"

#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using core::ErrorCode;

std::shared_ptr<cluster::Endpoint> Links::join(Process& process, cluster::Identity identity) {
  auto endpoint = process.join(network_, std::move(identity));
  owners_[endpoint.get()] = &process;
  return endpoint;
}

void Links::connect(Process& a, Process& b) {
  if (connected(a, b) || !a.alive() || !b.alive()) return;
  auto connection = std::make_shared<Connection>();
  connection->ends = {&a, &b};
  connections_.push_back(std::move(connection));
}

bool Links::connected(const Process& a, const Process& b) const {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& one) {
    return (one->ends[0] == &a && one->ends[1] == &b) || (one->ends[0] == &b && one->ends[1] == &a);
  });
}

void Links::pass(Process& from, Process& to, std::function<void()> what) {
  for (const auto& connection : connections_) {
    for (int way = 0; way < 2; ++way) {
      if (connection->ends[way] != &from || connection->ends[1 - way] != &to) continue;
      return send(connection, way, 200, [&to, what = std::move(what)] {
        if (to.alive()) what();
      });
    }
  }
}

void Links::ended(const cluster::Endpoint& role) {
  Process& process = *owners_.at(&role);
  const cluster::Identity identity = role.identity();
  if (!process.leave(role) || !role_ended) return;
  const auto all = connections_;
  for (const auto& connection : all) {
    for (int end = 0; end < 2; ++end) {
      if (connection->ends[end] != &process) continue;
      Process& at = *connection->ends[1 - end];
      auto& unheard = connection->ways[end].ended;
      unheard.push_back(identity);
      pass(process, at, [this, &at, &process, identity, connection, &unheard] {
        std::erase_if(unheard, [&identity](const cluster::Identity& role) {
          return role.self == identity.self && role.epoch == identity.epoch;
        });
        role_ended(at, process, identity);
      });
    }
  }
}

void Links::drop(Process& process) {
  const auto all = connections_;
  for (const auto& connection : all) {
    if (connection->ends[0] == &process || connection->ends[1] == &process)
      end(connection, "its process ended");
  }
}

void Links::sever(Process& a, Process& b, const std::string& why) {
  const auto all = connections_;
  for (const auto& one : all) {
    const bool these =
        (one->ends[0] == &a && one->ends[1] == &b) || (one->ends[0] == &b && one->ends[1] == &a);
    if (these) end(one, why);
  }
}

void Links::end(const ConnectionPtr& connection, const std::string& why) {
  if (!std::exchange(connection->up, false)) return;
  std::erase(connections_, connection);
  for (auto& way : connection->ways)
    way.held.clear();
  for (const int way : {1, 0})
    tell(connection, way, why);
}

// The end to which the way leads has lost the other, with all roles that it knew there.
// A side whose link is cut learns of it only by silence.
void Links::tell(const ConnectionPtr& connection, int way, const std::string& why) {
  Process& of = *connection->ends[way];
  Process& at = *connection->ends[1 - way];
  std::vector<cluster::Identity> roles = connection->ways[way].ended;
  for (const auto& [name, endpoint] : of.roles())
    roles.push_back(endpoint->identity());
  const bool hidden = at.host() != of.host() && !open(of.host(), at.host());
  const core::Duration after =
      hidden ? core::Duration(cluster::limits::kLinkLost_max) : delay(of, at);
  time_.schedule(time_.now() + after, [this, &at, &of, why, roles = std::move(roles)] {
    if (!at.alive()) return;
    for (const cluster::Identity& role : roles) {
      const auto place = of.roles().find(role.self);
      const bool there = place != of.roles().end() && place->second->identity().epoch == role.epoch;
      if (!there) role_ended(at, of, role);
    }
    lost_(at, of, why);
  });
}

core::Duration Links::delay(const Process& from, const Process& to) {
  const bool near = from.host() == to.host();
  const core::Duration least = near ? 30us : 200us;
  return least + core::Duration(rng_.next_below(near ? 300'000 : 3'000'000));
}

core::Duration Links::transfer(const std::string& from, const std::string& to, double bytes) const {
  const auto speed = speeds_.find({from, to});
  const double bytes_per_s = speed == speeds_.end() ? 1e9 : speed->second;
  return core::Duration(static_cast<core::Duration::rep>(bytes / bytes_per_s * 1e9));
}

void Links::cut(const std::string& from, const std::string& to, bool cut) {
  if (cut) {
    cuts_.emplace(from, to);
    return;
  }
  cuts_.erase({from, to});
  const auto all = connections_;
  for (const auto& connection : all) {
    for (int way = 0; way < 2; ++way) {
      if (connection->ends[way]->host() != from || connection->ends[1 - way]->host() != to)
        continue;
      auto held = std::move(connection->ways[way].held);
      connection->ways[way].held.clear();
      for (auto& [bytes, arrive] : held)
        send(connection, way, bytes, std::move(arrive));
    }
  }
}

void Links::slow(const std::string& from, const std::string& to, double bytes_per_s) {
  if (bytes_per_s > 0) {
    speeds_[{from, to}] = bytes_per_s;
  } else {
    speeds_.erase({from, to});
  }
}

core::Result<std::uint64_t> Links::carry(const cluster::Endpoint& from,
                                         const cluster::PeerName& to,
                                         const wire::Frame& frame) {
  Process& process = *owners_.at(&from);
  if (!process.alive()) return core::fail(ErrorCode::kPeerLost, "this process has ended");
  census_.count("message", wire::frame_kind(frame));
  if (const auto failure = wire::read_failure(frame))
    census_.count("error", std::string(core::error_name(failure->code)));
  if (const auto here = process.roles().find(to); here != process.roles().end()) {
    time_.schedule(time_.now() + 10us,
                   [this, &process, sender = from.identity().self, endpoint = here->second, frame] {
                     if (process.alive()) network_.hand_over(sender, endpoint, frame);
                   });
    return here->second->identity().epoch;
  }
  const auto known = finds ? finds(process, to) : std::nullopt;
  for (const auto& connection : connections_) {
    for (int way = 0; way < 2; ++way) {
      if (connection->ends[way] != &process) continue;
      if (known && *known != connection->ends[1 - way]) continue;
      const auto& roles = connection->ends[1 - way]->roles();
      const auto there = roles.find(to);
      if (there == roles.end()) continue;
      std::function<void()> arrived = [this, connection, way, from = from.shared_from_this(),
                                       endpoint = there->second,
                                       frame] { arrive(connection, way, from, endpoint, frame); };
      const auto header = wire::read_header(frame);
      if (repeated_ > 0 && header && !header->reply && rng_.next_uniform() < repeated_) {
        census_.count("repeated", wire::frame_kind(frame));
        time_.schedule(time_.now() + core::Duration(rng_.next_below(1'500'000'000)),
                       [this, connection, way, bytes = frame.size_bytes(), arrived] {
                         if (connection->up) send(connection, way, bytes, arrived);
                       });
      }
      send(connection, way, frame.size_bytes(), std::move(arrived));
      return there->second->identity().epoch;
    }
  }
  return core::fail(ErrorCode::kPeerLost, "no role named " + to + " is there");
}

void Links::send(const ConnectionPtr& connection,
                 int way,
                 std::size_t bytes,
                 std::function<void()> arrive) {
  const Process& from = *connection->ends[way];
  const Process& to = *connection->ends[1 - way];
  auto& line = connection->ways[way];
  if (from.host() != to.host() && (!open(from.host(), to.host()) || !line.held.empty())) {
    return hold(connection, way, bytes, std::move(arrive));
  }
  const core::TimePoint begin = std::max(line.last, time_.now());
  line.last = std::max(begin + transfer(from.host(), to.host(), static_cast<double>(bytes)),
                       time_.now() + delay(from, to));
  time_.schedule(line.last, [connection, arrive = std::move(arrive)] {
    if (connection->up) arrive();
  });
}

void Links::hold(const ConnectionPtr& connection,
                 int way,
                 std::size_t bytes,
                 std::function<void()> arrive) {
  auto& held = connection->ways[way].held;
  held.emplace_back(bytes, std::move(arrive));
  if (held.size() > 1) return;
  time_.schedule(time_.now() + cluster::limits::kLinkLost_max, [this, connection, way] {
    const bool still = !open(connection->ends[way]->host(), connection->ends[1 - way]->host());
    if (still && !connection->ways[way].held.empty()) end(connection, "its link is silent");
  });
}

void Links::arrive(const ConnectionPtr& connection,
                   int way,
                   const std::shared_ptr<const cluster::Endpoint>& from,
                   const std::shared_ptr<cluster::Endpoint>& to,
                   const wire::Frame& frame) {
  Process& at = *connection->ends[1 - way];
  if (!at.alive()) return;
  note(from->identity(), to->identity().self, frame);
  if (!hears || hears(at, *connection->ends[way], from->identity())) {
    return network_.hand_over(from->identity().self, to, frame);
  }
  census_.count("link", "not heard any more");
  const auto header = wire::read_header(frame);
  if (!header || header->reply) return;
  const core::Error why{ErrorCode::kPeerLost, from->identity().self + " was given up here"};
  const auto refusal = wire::failure_frame(wire::reply_header(*header, to->identity().self), why);
  auto asker = std::const_pointer_cast<cluster::Endpoint>(from);
  std::function<void()> answered = [this, connection, way, asker, refusal,
                                    name = to->identity().self] {
    if (connection->ends[way]->alive()) network_.hand_over(name, asker, refusal);
  };
  send(connection, 1 - way, refusal.size_bytes(), std::move(answered));
}

void Links::note(const cluster::Identity& from,
                 const std::string& to,
                 const wire::Frame& frame) const {
  if (!trace) return;
  const auto header = wire::read_header(frame);
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(time_.now().time_since_epoch());
  const auto failure = wire::read_failure(frame);
  trace(std::to_string(us.count()) + " us " + from.self + "@" + std::to_string(from.epoch) +
        " -> " + to + " " + wire::frame_kind(frame) + (header && header->reply ? " re #" : " #") +
        std::to_string(header ? header->request.value : 0) +
        (failure ? " " + failure->message : ""));
}

}  // namespace troupe::sim
