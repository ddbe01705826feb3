// Routing with faults.
#include "tests/sim/sim_network.hpp"

#include <boost/asio/post.hpp>

#include <string>

namespace troupe::cluster::sim {

using core::ErrorCode;
using wire::Frame;

class SimNetwork::Member final : public Endpoint {
 public:
  Member(Identity identity, async::Executor strand, async::Timers& timers, SimNetwork& network)
      : Endpoint(std::move(identity), std::move(strand), timers), network_(network) {}

  async::task<void> stop() override {
    if (network_.carrier_ != nullptr && !std::exchange(stopped_, true)) {
      network_.carrier_->ended(*this);
    }
    const auto found = network_.members_.find(identity().self);
    if (found != network_.members_.end() && found->second.get() == this) {
      network_.members_.erase(found);
    }
    co_await Endpoint::stop();
  }

  void crash() {
    crashed_ = true;
    end(false);
  }

 protected:
  core::Result<std::uint64_t> send_request(const PeerName& peer, const Frame& frame) override {
    if (crashed_) return core::fail(ErrorCode::kClosed, identity().self + " has crashed");
    if (network_.carrier_ != nullptr) return network_.carrier_->carry(*this, peer, frame);
    if (!network_.members_.contains(peer) && !network_.unnoticed_.contains(peer)) {
      return core::fail(ErrorCode::kPeerLost, "no role named " + peer + " is there");
    }
    network_.route(Way::kRequest, identity().self, peer, frame);
    return 0;
  }

  void send_reply(const PeerName& peer, const Frame& frame) override {
    if (crashed_) return;
    if (network_.carrier_ == nullptr) {
      return network_.route(Way::kReply, identity().self, peer, frame);
    }
    // An answer that finds no way is lost, and its asker's call ends with the link.
    static_cast<void>(network_.carrier_->carry(*this, peer, frame));
  }

 private:
  SimNetwork& network_;
  bool crashed_ = false;
  bool stopped_ = false;
};

SimNetwork::SimNetwork(VirtualTime& time, std::uint64_t seed, Faults faults)
    : time_(time), rng_(seed), faults_(faults) {}

SimNetwork::~SimNetwork() = default;

core::Result<std::shared_ptr<Endpoint>> SimNetwork::join(Identity identity) {
  const PeerName name = identity.self;
  if (members_.contains(name)) {
    return core::fail(ErrorCode::kInvalidArgument, "two roles are named " + name);
  }
  tell_lost(name);
  auto member = std::make_shared<Member>(std::move(identity), time_.make_strand(), time_, *this);
  members_.emplace(name, member);
  all_.push_back(member);
  return std::shared_ptr<Endpoint>(member);
}

void SimNetwork::crash(const PeerName& name) {
  const auto found = members_.find(name);
  if (found == members_.end()) return;
  const auto member = found->second;
  members_.erase(found);
  frozen_.erase(name);
  unnoticed_.insert(name);
  trace_.push_back(name + " crashes");
  member->crash();
  time_.schedule(time_.now() + faults_.notice, [this, name] { tell_lost(name); });
}

std::shared_ptr<Endpoint> SimNetwork::join_at(Identity identity, async::Executor strand) {
  all_.push_back(std::make_shared<Member>(std::move(identity), std::move(strand), time_, *this));
  return all_.back();
}

void SimNetwork::vanish(Endpoint& endpoint) {
  static_cast<Member&>(endpoint).crash();
}

void SimNetwork::tell_lost(const PeerName& name) {
  if (unnoticed_.erase(name) == 0) return;
  std::vector<PeerName> others;
  for (const auto& [other, member] : members_)
    others.push_back(other);
  for (const auto& other : others)
    tell(other, name, name + " is lost: it crashed");
}

void SimNetwork::tell(const PeerName& whom, const PeerName& lost, const std::string& why) {
  const auto found = members_.find(whom);
  if (found == members_.end()) return;
  boost::asio::post(found->second->strand(), [member = found->second, lost, why] {
    member->on_peer_lost(lost, core::Error{ErrorCode::kPeerLost, why});
  });
}

void SimNetwork::freeze(const PeerName& name) {
  frozen_.try_emplace(name);
}

void SimNetwork::thaw(const PeerName& name) {
  const auto held = frozen_.extract(name);
  if (held.empty()) return;
  for (const auto& frame : held.mapped())
    time_.schedule(time_.now(), frame);
}

void SimNetwork::cut(const PeerName& a, const PeerName& b) {
  cuts_.emplace(a, b);
  cuts_.emplace(b, a);
}

void SimNetwork::heal() {
  cuts_.clear();
}

std::size_t SimNetwork::open() const {
  std::size_t count = 0;
  for (const auto& member : all_)
    count += member->pending_calls() + member->inbox();
  return count;
}

void SimNetwork::note(
    Way way, const PeerName& from, const PeerName& to, const Frame& frame, const char* fate) {
  const auto header = wire::read_header(frame);
  const auto now_us =
      std::chrono::duration_cast<std::chrono::microseconds>(time_.now().time_since_epoch());
  trace_.push_back(std::to_string(now_us.count()) + " us " + from + " -> " + to + " " +
                   wire::frame_kind(frame) + (way == Way::kReply ? " re #" : " #") +
                   std::to_string(header ? header->request.value : 0) + " " + fate);
}

void SimNetwork::route(Way way, const PeerName& from, const PeerName& to, const Frame& frame) {
  if (cuts_.contains({from, to})) return note(way, from, to, frame, "cut off");
  if (rng_.next_uniform() < faults_.drop) return note(way, from, to, frame, "dropped");
  const int copies = rng_.next_uniform() < faults_.duplicate ? 2 : 1;
  note(way, from, to, frame, copies == 2 ? "sent twice" : "sent");
  const auto span = static_cast<std::uint64_t>((faults_.delay_max - faults_.delay_min).count());
  for (int i = 0; i < copies; ++i) {
    const core::Duration delay = faults_.delay_min + core::Duration(rng_.next_below(span + 1));
    time_.schedule(time_.now() + delay,
                   [this, way, from, to, frame] { deliver(way, from, to, frame); });
  }
}

void SimNetwork::deliver(Way way, const PeerName& from, const PeerName& to, const Frame& frame) {
  if (const auto held = frozen_.find(to); held != frozen_.end()) {
    note(way, from, to, frame, "held");
    held->second.push_back([this, way, from, to, frame] { deliver(way, from, to, frame); });
    return;
  }
  const auto found = members_.find(to);
  if (found == members_.end()) {
    note(way, from, to, frame, "lost: nobody there");
    if (!unnoticed_.contains(to)) tell(from, to, to + " is gone");
    return;
  }
  note(way, from, to, frame, "arrives");
  auto copied = Frame::copy_of(frame.bytes());
  if (copied) hand_over(from, found->second, *copied);
}

void SimNetwork::hand_over(const PeerName& from,
                           const std::shared_ptr<Endpoint>& to,
                           const Frame& frame) {
  const auto header = wire::read_header(frame);
  if (!header) return;
  if (header->reply) {
    boost::asio::post(to->strand(), [to, from, frame] { to->on_reply(from, frame); });
  } else if (to->admit()) {
    boost::asio::post(to->strand(), [to, from, frame] { to->on_request(from, frame); });
  } else {
    const core::Error full{ErrorCode::kOverloaded, "the inbox is full"};
    const PeerName name = to->identity().self;
    const auto refusal = wire::failure_frame(wire::reply_header(*header, name), full);
    if (carrier_ == nullptr) return route(Way::kReply, name, from, refusal);
    static_cast<void>(carrier_->carry(*to, from, refusal));
  }
}

}  // namespace troupe::cluster::sim
