#include "runtime/cluster/loopback/loopback.hpp"

#include <boost/asio/post.hpp>

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace troupe::cluster {

using wire::Frame;

// The roles of the network by name. A role that leaves is erased.
struct LoopbackNetwork::Directory {
  std::mutex mutex;
  std::map<PeerName, std::weak_ptr<Endpoint>> members;

  std::shared_ptr<Endpoint> find(const PeerName& name) {
    const std::lock_guard lock(mutex);
    const auto found = members.find(name);
    return found == members.end() ? nullptr : found->second.lock();
  }

  void leave(const PeerName& name) {
    const std::lock_guard lock(mutex);
    members.erase(name);
  }
};

class LoopbackNetwork::Member final : public Endpoint {
 public:
  Member(Identity identity,
         async::Executor strand,
         async::Timers& timers,
         std::shared_ptr<Directory> directory)
      : Endpoint(std::move(identity), std::move(strand), timers),
        directory_(std::move(directory)) {}

  async::task<void> stop() override {
    if (!std::exchange(left_, true)) directory_->leave(identity().self);
    co_await Endpoint::stop();
  }

 protected:
  core::Result<std::uint64_t> send_request(const PeerName& peer, const Frame& frame) override {
    const auto target = directory_->find(peer);
    if (!target) {
      return core::fail(ErrorCode::kPeerLost, "no role named " + peer + " is there");
    }
    TROUPE_TRY(target->admit());
    boost::asio::post(target->strand(), [target, from = identity().self, bytes = copy(frame)] {
      target->on_request(from, bytes);
    });
    return 0;
  }

  void send_reply(const PeerName& peer, const Frame& frame) override {
    const auto target = directory_->find(peer);
    if (!target) return;
    boost::asio::post(target->strand(), [target, from = identity().self, bytes = copy(frame)] {
      target->on_reply(from, bytes);
    });
  }

 private:
  // As over a wire, the receiver gets bytes of its own, checked again.
  static Frame copy(const Frame& frame) {
    auto copied = Frame::copy_of(frame.bytes());
    return copied ? std::move(copied).value() : frame;
  }

  const std::shared_ptr<Directory> directory_;
  bool left_ = false;
};

LoopbackNetwork::LoopbackNetwork(async::Timers& timers)
    : directory_(std::make_shared<Directory>()), timers_(timers) {}

LoopbackNetwork::~LoopbackNetwork() = default;

core::Result<std::shared_ptr<Endpoint>> LoopbackNetwork::join(Identity identity,
                                                              async::Executor strand) {
  const PeerName name = identity.self;
  auto member =
      std::make_shared<Member>(std::move(identity), std::move(strand), timers_, directory_);
  const std::lock_guard lock(directory_->mutex);
  auto& place = directory_->members[name];
  if (!place.expired()) {
    return core::fail(ErrorCode::kInvalidArgument, "two roles are named " + name);
  }
  place = member;
  return std::shared_ptr<Endpoint>(std::move(member));
}

}  // namespace troupe::cluster
