// A local role in the exchange: its Endpoint, on the role's strand, and its actor, on CAF's
// threads. The strand sends only through the directory. The actor only checks incoming frames,
// takes a place in the inbox, and posts to the strand. Held by the role's host; the actor holds it
// weakly.
#pragma once

#include "runtime/cluster/caf/core.hpp"
#include "runtime/cluster/endpoint.hpp"

#include <caf/actor_system.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace troupe::cluster::exchange {

class Member final : public Endpoint {
 public:
  Member(Identity identity,
         async::Executor strand,
         async::Timers& timers,
         std::shared_ptr<Core> core);
  ~Member() override;

  // Makes the actor, takes the name, and announces it before the role can send anything.
  core::Result<void> enter(caf::actor_system& system, const caf::actor& introducer);
  // Gives the role a new actor under its name, and announces that to every connected process.
  void enter_again(caf::actor_system& system, const caf::actor& introducer);

  async::task<void> stop() override;
  std::uint64_t actor() const noexcept override { return actor_.load(std::memory_order_relaxed); }

 protected:
  core::Result<std::uint64_t> send_request(const PeerName& peer, const wire::Frame& frame) override;
  void send_reply(const PeerName& peer, const wire::Frame& frame) override;

 private:
  wire::Hello hello() const;
  caf::actor spawn(caf::actor_system& system, const caf::actor& introducer);
  void introduce(const caf::actor& introducer,
                 const caf::actor& handle,
                 const std::vector<caf::actor>& to);
  void leave();
  friend class Shell;

  const std::shared_ptr<Core> core_;
  std::atomic<std::uint64_t> actor_{0};
  std::atomic<bool> left_{true};
};

}  // namespace troupe::cluster::exchange
