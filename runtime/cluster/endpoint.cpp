// Calls, their answers, and the serving of requests.
#include "runtime/cluster/endpoint.hpp"

#include "runtime/cluster/limits.hpp"
#include "runtime/core/check.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <exception>
#include <string>

namespace troupe::cluster {

using core::ErrorCode;
using core::Result;
using wire::Frame;

namespace {
const core::Error kStopped{ErrorCode::kPeerLost, "the role has stopped"};
}  // namespace

// A call's line in the table, for as long as its coroutine waits.
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
  const auto older = [](const auto& a, const auto& b) { return a.first < b.first; };
  const auto oldest = std::min_element(calls_.begin(), calls_.end(), older);
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
    co_return core::fail(ErrorCode::kClosed, identity().self + " has stopped; no call to " + peer);
  }
  TROUPE_CO_TRY_ASSIGN(header, wire::read_header(request));
  if (header.reply || calls_.contains(header.request.value)) {
    co_return core::fail(ErrorCode::kInvalidArgument,
                         "a call to " + peer + " without a request id of its own");
  }
  if (calls_.size() >= limits::kPendingCalls_max) {
    co_return core::fail(ErrorCode::kOverloaded,
                         identity().self + " already waits for " +
                             std::to_string(limits::kPendingCalls_max) + " answers");
  }
  auto reply = std::make_shared<Answer>();
  calls_.emplace(header.request.value, Call{peer, reply});
  const Entry entry{calls_, header.request.value};
  TROUPE_CO_TRY(send_request(peer, request));
  ++frames_out_;
  core::Error late;
  late.code = ErrorCode::kDeadline;
  late.message = peer + " did not answer '" + wire::frame_kind(request) + "' of " +
                 identity().self + " within " + std::to_string(header.budget_ms) + " ms";
  auto answered = co_await async::take_until<Frame>(timers(), reply, deadline, late);
  if (!answered) co_return answered.failure();
  if (const auto failure = wire::read_failure(*answered)) co_return core::fail(failure->within(peer));
  co_return answered;
}

void Endpoint::on_reply(const PeerName& from, Frame frame) {
  ++frames_in_;
  const auto header = wire::read_header(frame);
  // Another epoch's answer may carry an id that is in use again.
  const bool ours = header && header->reply && header->run == identity().run &&
                    header->epoch == identity().epoch;
  const auto found = ours ? calls_.find(header->request.value) : calls_.end();
  if (found == calls_.end() || found->second.peer != from ||
      !found->second.answer->set(std::move(frame))) {
    ++stray_replies_;
  }
}

void Endpoint::on_peer_lost(const PeerName& peer, const core::Error& cause) {
  for (auto& [id, call] : calls_) {
    if (call.peer == peer) call.answer->set(core::fail(ErrorCode::kPeerLost, cause.message));
  }
}

bool Endpoint::admit() noexcept {
  if (inbox_.fetch_add(1, std::memory_order_relaxed) < limits::kRoleInbox_frames_max) return true;
  inbox_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void Endpoint::on_request(PeerName from, Frame frame) {
  ++frames_in_;
  core::Error refusal = kStopped;
  auto header = wire::read_header(frame);
  if (header && header->run != identity().run) {
    refusal = {ErrorCode::kUnsupported, "a request of another run"};
  } else if (header && !ended_ && !handler_) {
    refusal = {ErrorCode::kPeerLost, "the role does not serve yet"};
  } else if (header && !ended_ && !handlers_.cancelled()) {
    requests_.push_front(Request{std::move(from), std::move(header).value()});
    handlers_.spawn("", serve_one(shared_from_this(), requests_.begin(), std::move(frame)));
    return;
  }
  inbox_.fetch_sub(1, std::memory_order_relaxed);
  refuse(from, frame, refusal);
}

void Endpoint::refuse(const PeerName& to, const Frame& request, const core::Error& error) {
  const auto header = wire::read_header(request);
  if (!header) return;
  ++frames_out_;
  send_reply(to, wire::failure_frame(wire::reply_header(*header, identity().self), error));
}

// An expected failure is an answer; an exception is a bug, answered and then raised. A handler that
// is unwound by `end` has no place any more: `end` answered for it.
async::task<Result<void>> Endpoint::serve_one(std::shared_ptr<Endpoint> self, Place place,
                                              Frame frame) {
  std::optional<core::Error> bug;
  try {
    auto result = co_await self->handler_(std::move(frame));
    if (!self->ended_) self->answer(place, result);
  } catch (const std::exception& thrown) {
    if (self->ended_) throw;
    if (self->handlers_.cancelled()) {  // by another handler's bug
      self->answer(place, core::fail(kStopped));
      throw;
    }
    bug = core::Error{ErrorCode::kInternal, thrown.what()};
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
    if (!goodbye) break;
    const auto header = wire::reply_header(request.header, identity().self);
    ++frames_out_;
    send_reply(request.from, wire::failure_frame(header, kStopped));
  }
  handlers_.cancel();
}

async::task<void> Endpoint::stop() {
  const std::shared_ptr<Endpoint> self = shared_from_this();
  end(true);
  auto joined = co_await handlers_.join();
  static_cast<void>(joined);  // bugs were reported by the hook when they happened
}

}  // namespace troupe::cluster
