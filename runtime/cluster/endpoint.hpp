// What every transport shares: the table of calls that wait for answers, the bounded inbox, the
// handlers' scope, and who is told what when something ends. A transport adds only how bytes move:
// `send_request`, `send_reply`, and calls back `on_request`, `on_reply`, `on_peer_lost`.
//
// All state lives on the role's strand, except `admit`, which senders on other strands use to be refused
// before they queue anything. Bounds: kPendingCalls_max, kRoleInbox_frames_max, and for messages in
// parts kMessages_bytes_max. Held by shared_ptr.
//
// A message that is longer than a frame goes in parts, one after the other, each acknowledged before
// kPartDeadline; then a small frame stands for it. So neither a request nor an answer is bounded by
// a frame, and no link is taken up by one message.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "runtime/async/scope.hpp"
#include "runtime/cluster/part_intake.hpp"
#include "runtime/cluster/transport.hpp"

namespace troupe::cluster {

class Endpoint : public Transport, public std::enable_shared_from_this<Endpoint> {
 public:
  Endpoint(Identity identity, async::Executor strand, async::Timers& timers);
  ~Endpoint() override;  // checks that it was stopped, if it ever served

  async::task<core::Result<wire::Frame>> call(PeerName peer, wire::Frame request,
                                              async::Deadline deadline) final;
  void serve(Handler handler) final;
  async::task<void> stop() override;

  // Called with an exception that escaped a handler, a bug of the role; or with the end of its actor.
  void on_bug(std::function<void(const core::Error&)> hook);

  std::size_t pending_calls() const noexcept { return calls_.size(); }
  std::size_t inbox() const noexcept { return inbox_.load(std::memory_order_relaxed); }
  // Held by messages that came, or come, in parts.
  std::uint64_t part_bytes() const noexcept { return parts_.bytes(); }
  std::uint64_t stray_replies() const noexcept { return stray_replies_; }
  std::uint64_t frames_in() const noexcept { return frames_in_; }
  std::uint64_t frames_out() const noexcept { return frames_out_; }
  // The peer of the oldest call that waits; "" when none does.
  PeerName waits_for() const;
  // The role's actor id in its process; 0 where roles have no actor.
  virtual std::uint64_t actor() const noexcept { return 0; }
  const async::Executor& strand() const noexcept { return strand_; }

  // Takes a place in the inbox. Error: kOverloaded when it is full. Safe on any thread. Whoever got
  // a place hands the request to `on_request`, which keeps it until the answer is out.
  core::Result<void> admit();

  // On the strand, from the transport:
  void on_request(PeerName from, wire::Frame frame);  // with a place from `admit`
  void on_reply(const PeerName& from, wire::Frame frame);
  void on_peer_lost(const PeerName& peer, const core::Error& cause);

 protected:
  // Hands a request to the network, or says at once why not. Called on the strand.
  virtual core::Result<void> send_request(const PeerName& peer, const wire::Frame& frame) = 0;
  // Hands an answer to the network; what becomes of it the asker's deadline covers.
  virtual void send_reply(const PeerName& peer, const wire::Frame& frame) = 0;

  // Everything `stop` does before it waits. `goodbye` tells askers; a crash does not.
  void end(bool goodbye);
  bool ended() const noexcept { return ended_; }

  // What carried this role is gone: tells whoever listens for bugs, once, and ends the role's calls.
  void broken(const core::Error& error);

 private:
  using Answer = async::Oneshot<core::Result<wire::Frame>>;
  struct Call {
    PeerName peer;
    std::shared_ptr<Answer> answer;
  };
  struct Request {  // being served
    PeerName from;
    wire::Header header;
    std::uint64_t part_bytes = 0;  // that it holds, having come in parts
  };
  using Place = std::list<Request>::iterator;
  struct Entry;

  static async::task<core::Result<void>> serve_one(std::shared_ptr<Endpoint> self, Place place,
                                                   wire::Frame frame);
  // The call itself, of a frame. Callers of the next two keep the endpoint alive meanwhile.
  async::task<core::Result<wire::Frame>> exchange(PeerName peer,
                                                  wire::Frame request,
                                                  std::string kind,
                                                  async::Deadline deadline);
  // Gives the frame that stands for the message. An overloaded peer is asked again until the
  // deadline.
  async::task<core::Result<wire::Frame>> send_parts(PeerName peer,
                                                    wire::Frame message,
                                                    async::Deadline deadline);
  bool take_part(const PeerName& from, const wire::Header& header, const wire::Frame& frame);
  // The message that the frame stands for, or the frame itself; nothing when it was taken before.
  core::Result<std::optional<wire::Frame>> message_of(const PeerName& from, wire::Frame frame);
  bool set_answer(Answer& answer, const PeerName& from, wire::Frame frame);
  void answer(Place place, const core::Result<wire::Frame>& result);
  void refuse(const PeerName& to, const wire::Header& request, const core::Error& error);

  const async::Executor strand_;
  std::unordered_map<std::uint64_t, Call> calls_;  // by request id
  std::list<Request> requests_;
  PartIntake parts_;
  std::atomic<std::size_t> inbox_{0};
  Handler handler_;
  async::Scope handlers_;
  std::function<void(const core::Error&)> bug_hook_;
  std::uint64_t stray_replies_ = 0;
  std::uint64_t frames_in_ = 0;
  std::uint64_t frames_out_ = 0;
  bool ended_ = false;
};

}  // namespace troupe::cluster
