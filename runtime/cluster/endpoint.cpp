#include "runtime/cluster/endpoint.hpp"

#include "runtime/async/thrown.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/check.hpp"
#include "runtime/wire/limits.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <exception>
#include <limits>
#include <string>

namespace troupe::cluster {

using wire::Frame;

namespace {
const core::Error kStopped{ErrorCode::kPeerLost, "the role has stopped"};

// Size in bytes of a message that must go in parts; 0 for one that fits a frame.
std::uint64_t long_bytes(const Frame& message) {
  return message.size_bytes() > wire::limits::kFrame_bytes_max ? message.size_bytes() : 0;
}

// The time left until the deadline, in ms, for a header.
std::uint32_t budget_ms(async::Deadline deadline, const core::Clock& clock) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining(clock)).count();
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, kMost));
}
}  // namespace

wire::Header Transport::new_request(async::Deadline deadline) {
  wire::Header header;
  header.run = identity_.run;
  header.epoch = identity_.epoch;
  header.request = core::RequestId{++last_request_};
  header.sender = identity_.self;
  header.budget_ms = budget_ms(deadline, timers_);
  return header;
}

// Removes a call from the table when its coroutine ends.
struct Endpoint::Entry {
  std::unordered_map<std::uint64_t, Call>& calls;
  std::uint64_t id;
  ~Entry() { calls.erase(id); }
};

Endpoint::Endpoint(Identity identity, async::Executor strand, async::Timers& timers)
    : Transport(std::move(identity), timers), strand_(strand), handlers_(strand) {}

Endpoint::~Endpoint() {
  TROUPE_CHECK(ended_ || !handler_, "a transport that serves is stopped before it goes");
}

void Endpoint::serve(Handler handler) {
  TROUPE_CHECK(!handler_, "a role serves with one handler");
  handler_ = std::move(handler);
}

void Endpoint::on_bug(std::function<void(const core::Error&)> hook) {
  bug_hook_ = hook;
  handlers_.on_error(std::move(hook));
}

PeerName Endpoint::waits_for() const {
  const auto oldest =
      std::ranges::min_element(calls_, {}, [](const auto& call) { return call.first; });
  return oldest == calls_.end() ? PeerName() : oldest->second.peer;
}

void Endpoint::broken(const core::Error& error) {
  if (ended_) return;
  end(false);
  if (bug_hook_) bug_hook_(error);
}

async::task<Result<Frame>> Endpoint::call(PeerName peer, Frame request, async::Deadline deadline) {
  TROUPE_CHECK(!deadline.is_none(), "a call has a deadline");
  const std::shared_ptr<Endpoint> self = shared_from_this();
  if (ended_) {
    co_return core::fail(ErrorCode::kClosed, identity().self + " has stopped",
                         "no call to " + peer);
  }
  TROUPE_CO_TRY_ASSIGN(header, wire::read_header(request));
  if (header.reply || calls_.contains(header.request.value)) {
    co_return core::fail(ErrorCode::kInvalidArgument,
                         "a call to " + peer + " without a request id of its own");
  }
  if (calls_.size() >= limits::kPendingCalls_max) {
    co_return core::fail(ErrorCode::kOverloaded, identity().self + " already waits for " +
                                                     std::to_string(limits::kPendingCalls_max) +
                                                     " answers");
  }
  std::string kind = wire::frame_kind(request);
  if (long_bytes(request) > 0) {
    auto sent = co_await send_parts(peer, std::move(request), deadline);
    if (!sent) co_return sent.failure();
    request = std::move(*sent);
  }
  auto answered = co_await exchange(std::move(peer), std::move(request), std::move(kind), deadline);
  co_return answered;
}

async::task<Result<Frame>> Endpoint::exchange(PeerName peer,
                                              Frame request,
                                              std::string kind,
                                              async::Deadline deadline) {
  TROUPE_CO_TRY_ASSIGN(header, wire::read_header(request));
  auto reply = std::make_shared<Answer>();
  Call& call = calls_.emplace(header.request.value, Call{peer, 0, reply}).first->second;
  const Entry entry{calls_, header.request.value};
  TROUPE_CO_TRY_ASSIGN(epoch, send_request(peer, request));
  call.epoch = epoch;
  ++frames_out_;
  core::Error late;
  late.code = ErrorCode::kDeadline;
  late.message = peer + " did not answer '" + kind + "' of " + identity().self + " within " +
                 std::to_string(header.budget_ms) + " ms";
  auto answered = co_await async::take_until<Frame>(timers(), reply, deadline, late);
  if (!answered) co_return answered.failure();
  if (const auto failure = wire::read_failure(*answered))
    co_return core::fail(failure->within(peer));
  co_return answered;
}

async::task<Result<Frame>> Endpoint::send_parts(PeerName peer,
                                                Frame message,
                                                async::Deadline deadline) {
  TROUPE_CO_TRY_ASSIGN(header, wire::read_header(message));
  const std::uint64_t number = new_request(deadline).request.value;
  const std::uint32_t count = wire::part_count(message.size_bytes());
  const std::string kind = wire::frame_kind(message);
  for (std::uint32_t index = 0; index < count;) {
    const async::Deadline until =
        std::min(deadline, async::Deadline::after(timers(), limits::kPartDeadline));
    const wire::Part part{number, index, message.size_bytes(),
                          wire::part_of(message.bytes(), index)};
    Frame frame = wire::part_frame(new_request(until), part);
    std::string name =
        "part " + std::to_string(index + 1) + " of " + std::to_string(count) + " of " + kind;
    auto taken = co_await exchange(peer, std::move(frame), std::move(name), until);
    if (taken) {
      ++index;
      continue;
    }
    const bool waits = taken.error().code == ErrorCode::kOverloaded &&
                       deadline.remaining(timers()) > limits::kPartBackoff;
    if (!waits) co_return taken.failure();
    co_await async::sleep_for(timers(), limits::kPartBackoff);
    if (ended_) co_return core::fail(kStopped);
  }
  if (!header.reply) header.budget_ms = std::min(header.budget_ms, budget_ms(deadline, timers()));
  co_return wire::whole_frame(header, {number, identity().epoch});
}

bool Endpoint::take_part(const PeerName& from, const wire::Header& header, const Frame& frame) {
  const auto part = wire::read_part(frame);
  if (!part) return false;
  inbox_.fetch_sub(1, std::memory_order_relaxed);
  ++frames_out_;
  const auto answer = wire::reply_header(header, identity().self);
  const auto taken = parts_.put(from, header.epoch, *part, timers().now());
  send_reply(from, taken ? wire::ack_frame(answer) : wire::failure_frame(answer, taken.error()));
  return true;
}

Result<std::optional<Frame>> Endpoint::message_of(const PeerName& from, Frame frame) {
  const auto whole = wire::read_whole(frame);
  if (!whole) return std::optional<Frame>(std::move(frame));
  TROUPE_TRY_ASSIGN(stands_for, wire::read_header(frame));
  TROUPE_TRY_ASSIGN(message, parts_.take(from, whole->epoch, whole->message));
  if (!message) return message;
  const auto header = wire::read_header(*message);
  if (header && header->request == stands_for.request && header->reply == stands_for.reply) {
    return message;
  }
  parts_.release(message->size_bytes());
  return core::fail(ErrorCode::kData, "the parts of " + from + " belong to another message");
}

void Endpoint::on_reply(const PeerName& from, Frame frame) {
  ++frames_in_;
  const auto header = wire::read_header(frame);
  // An answer to an earlier start of this role may carry a request id that is in use again.
  const bool ours =
      header && header->reply && header->run == identity().run && header->epoch == identity().epoch;
  const auto found = ours ? calls_.find(header->request.value) : calls_.end();
  if (found == calls_.end() || found->second.peer != from ||
      !set_answer(*found->second.answer, from, std::move(frame))) {
    ++stray_replies_;
  }
}

bool Endpoint::set_answer(Answer& answer, const PeerName& from, Frame frame) {
  auto message = message_of(from, std::move(frame));
  if (!message) return answer.set(message.failure());
  if (!*message) return false;
  parts_.release(long_bytes(**message));
  return answer.set(std::move(**message));
}

void Endpoint::on_peer_lost(const PeerName& peer, const core::Error& cause, std::uint64_t epoch) {
  for (auto& [id, call] : calls_) {
    if (call.peer == peer && call.epoch <= epoch)
      call.answer->set(core::fail(ErrorCode::kPeerLost, cause.message));
  }
  parts_.forget(peer);
}

Result<void> Endpoint::admit() {
  if (inbox_.fetch_add(1, std::memory_order_relaxed) < limits::kRoleInbox_frames_max) return {};
  inbox_.fetch_sub(1, std::memory_order_relaxed);
  return core::fail(ErrorCode::kOverloaded, "the inbox of " + identity().self + " already holds " +
                                                std::to_string(limits::kRoleInbox_frames_max) +
                                                " requests");
}

void Endpoint::on_request(PeerName from, Frame frame) {
  ++frames_in_;
  core::Error refusal = kStopped;
  auto header = wire::read_header(frame);
  parts_.forget_silent(timers().now());
  if (header && header->run != identity().run) {
    refusal = {ErrorCode::kUnsupported, "a request of another run"};
  } else if (header && !ended_ && take_part(from, *header, frame)) {
    return;
  } else if (header && !ended_ && !handler_) {
    refusal = {ErrorCode::kPeerLost, "the role does not serve yet"};
  } else if (header && !ended_ && !handlers_.cancelled()) {
    auto message = message_of(from, frame);
    if (message && *message) {
      requests_.push_front(Request{from, std::move(*header), long_bytes(**message)});
      handlers_.spawn("", serve_one(shared_from_this(), requests_.begin(), std::move(**message)));
      return;
    }
    if (message) {  // the request came twice; the first one is answered
      inbox_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    refusal = message.error();
  }
  inbox_.fetch_sub(1, std::memory_order_relaxed);
  if (header) refuse(from, *header, refusal);
}

void Endpoint::refuse(const PeerName& to, const wire::Header& request, const core::Error& error) {
  ++frames_out_;
  send_reply(to, wire::failure_frame(wire::reply_header(request, identity().self), error));
}

// Runs the handler and answers. A failed Result is sent as the answer. An exception is a bug, or
// says that the system is short of something: it is sent as the answer, too, and then returned as
// an error. After `end` there is nothing to answer, because `end` has removed the request.
async::task<Result<void>> Endpoint::serve_one(std::shared_ptr<Endpoint> self,
                                              Place place,
                                              Frame frame) {
  std::optional<core::Error> bug;
  try {
    auto result = co_await self->handler_(std::move(frame));
    if (!self->ended_ && result && long_bytes(*result) > 0) {
      const auto deadline = async::Deadline::after(
          self->timers(), std::chrono::milliseconds(place->header.budget_ms));
      auto sent = co_await self->send_parts(place->from, std::move(*result), deadline);
      result = std::move(sent);
    }
    if (!self->ended_) self->answer(place, result);
  } catch (const std::exception& thrown) {
    if (self->ended_) throw;
    if (self->handlers_.cancelled()) {  // by another handler's bug
      self->answer(place, core::fail(kStopped));
      throw;
    }
    bug = async::error_of(thrown);
  }
  if (bug) {
    const auto kind = "a request of " + place->from;
    self->answer(place, core::fail(*bug));
    co_return core::fail(bug->within(self->identity().self + ", serving " + kind));
  }
  co_return Result<void>();
}

void Endpoint::answer(Place place, const Result<Frame>& result) {
  const auto reply_header = wire::reply_header(place->header, identity().self);
  const PeerName from = std::move(place->from);
  parts_.release(place->part_bytes);
  requests_.erase(place);
  inbox_.fetch_sub(1, std::memory_order_relaxed);
  ++frames_out_;
  send_reply(from, result ? *result : wire::failure_frame(reply_header, result.error()));
}

void Endpoint::end(bool goodbye) {
  if (ended_) return;
  ended_ = true;
  for (auto& [id, call] : calls_) {
    call.answer->set(core::fail(ErrorCode::kClosed, identity().self + " has stopped"));
  }
  auto open = std::move(requests_);
  requests_.clear();
  inbox_.fetch_sub(open.size(), std::memory_order_relaxed);
  for (const Request& request : open) {
    if (goodbye) refuse(request.from, request.header, kStopped);
  }
  handlers_.cancel();
}

async::task<void> Endpoint::stop() {
  const std::shared_ptr<Endpoint> self = shared_from_this();
  end(true);
  auto joined = co_await handlers_.join();
  static_cast<void>(joined);  // bugs were reported by the hook when they happened
  handler_ = nullptr;         // a role that it holds may hold this endpoint
}

}  // namespace troupe::cluster
