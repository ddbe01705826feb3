// The base class of all transports. It keeps the table of calls that wait for answers, bounds the
// inbox, runs the handlers, and tells askers when a role or a peer ends. A transport only moves
// frames: it implements `send_request` and `send_reply`, and calls `on_request`, `on_reply` and
// `on_peer_lost`.
//
// All state lives on the role's strand, except the inbox's count: `admit` checks it on the sender's
// thread, so a full inbox refuses a request before it is queued. Bounds: kPendingCalls_max,
// kRoleInbox_frames_max, and for messages in parts kMessages_bytes_max. Held by shared_ptr.
//
// A message that is longer than a frame goes in parts, one after the other, each acknowledged
// within kPartDeadline; then a small frame completes it. So a request or an answer may be longer
// than a frame, and no message blocks a link for long.
#pragma once

#include "runtime/async/scope.hpp"
#include "runtime/cluster/part_intake.hpp"
#include "runtime/cluster/transport.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

namespace troupe::cluster {

class Endpoint : public Transport, public std::enable_shared_from_this<Endpoint> {
 public:
  static constexpr std::uint64_t kEveryEpoch = std::numeric_limits<std::uint64_t>::max();

  Endpoint(Identity identity, async::Executor strand, async::Timers& timers);
  ~Endpoint() override;  // checks that it was stopped, if it ever served

  async::task<core::Result<wire::Frame>> call(PeerName peer,
                                              wire::Frame request,
                                              async::Deadline deadline) final;
  void serve(Handler handler) final;
  async::task<void> stop() override;

  // `hook` is called when an exception escapes a handler (a bug), or when the role's actor ends.
  void on_bug(std::function<void(const core::Error&)> hook);

  std::size_t pending_calls() const noexcept { return calls_.size(); }
  std::size_t inbox() const noexcept { return inbox_.load(std::memory_order_relaxed); }
  // Bytes of the messages in parts that are being received or served.
  std::uint64_t part_bytes() const noexcept { return parts_.bytes(); }
  std::uint64_t stray_replies() const noexcept { return stray_replies_; }
  std::uint64_t frames_in() const noexcept { return frames_in_; }
  std::uint64_t frames_out() const noexcept { return frames_out_; }
  // The peer of the oldest call that waits for an answer; "" if no call waits.
  PeerName waits_for() const;
  // The role's actor id in its process; 0 where roles have no actor.
  virtual std::uint64_t actor() const noexcept { return 0; }
  const async::Executor& strand() const noexcept { return strand_; }

  // Takes a place in the inbox. Error: kOverloaded when it is full. Safe on any thread. The caller
  // then passes the request to `on_request`, which keeps the place until the answer is sent.
  core::Result<void> admit();

  // On the strand, from the transport:
  void on_request(PeerName from, wire::Frame frame);  // with a place from `admit`
  void on_reply(const PeerName& from, wire::Frame frame);
  // Fails the calls to the lives of a peer up to `epoch`: a loss may be told after the peer has
  // come back and was called again.
  void on_peer_lost(const PeerName& peer,
                    const core::Error& cause,
                    std::uint64_t epoch = kEveryEpoch);

 protected:
  // Hands a request to the network, or says at once why not. Called on the strand.
  // Returns the epoch of the peer's life that gets the request; 0 from a transport that tells a
  // loss before it takes requests for the next life.
  virtual core::Result<std::uint64_t> send_request(const PeerName& peer,
                                                   const wire::Frame& frame) = 0;
  // Hands an answer to the network. If it is lost, the asker's deadline ends the call.
  virtual void send_reply(const PeerName& peer, const wire::Frame& frame) = 0;

  // The first half of `stop`: ends calls and cancels handlers; with `goodbye` it answers the
  // askers.
  void end(bool goodbye);
  bool ended() const noexcept { return ended_; }

  // The role's actor is gone: ends the role's calls and calls the hook of `on_bug`, once.
  void broken(const core::Error& error);

 private:
  using Answer = async::Oneshot<core::Result<wire::Frame>>;
  struct Call {
    PeerName peer;
    std::uint64_t epoch = 0;  // of the peer's life that was called
    std::shared_ptr<Answer> answer;
  };
  struct Request {  // being served
    PeerName from;
    wire::Header header;
    std::uint64_t part_bytes = 0;  // size of a request that came in parts; else 0
  };
  using Place = std::list<Request>::iterator;
  struct Entry;

  static async::task<core::Result<void>> serve_one(std::shared_ptr<Endpoint> self,
                                                   Place place,
                                                   wire::Frame frame);
  // Sends one frame and waits for the answer. The caller keeps the endpoint alive.
  async::task<core::Result<wire::Frame>> exchange(PeerName peer,
                                                  wire::Frame request,
                                                  std::string kind,
                                                  async::Deadline deadline);
  // Sends a long message in parts and returns the small frame that completes it. Repeats a part
  // that an overloaded peer refuses, until the deadline. The caller keeps the endpoint alive.
  async::task<core::Result<wire::Frame>> send_parts(PeerName peer,
                                                    wire::Frame message,
                                                    async::Deadline deadline);
  bool take_part(const PeerName& from, const wire::Header& header, const wire::Frame& frame);
  // If the frame completes a message sent in parts: that message, or nothing when the frame came
  // before. Otherwise the frame itself.
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
