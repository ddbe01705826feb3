#include "actors/reward/http_servers.hpp"

#include "actors/reward/http_reward.hpp"
#include "actors/reward/reward_json.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <string_view>

namespace troupe::actors::reward {
namespace {

using Place = ServerBoard::Place;

constexpr std::uint64_t kSilence_s_max = 60;  // most that one Retry-After may ask for
constexpr core::Duration kLook =
    std::chrono::milliseconds(500);  // between looks at a silent server

bool means_away(int status) {
  return status >= 500 || status == 408 || status == 429;
}

}  // namespace

std::string printed(const std::string& body) {
  std::string text = body.substr(0, kShown_bytes_max);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
  }
  return text;
}

std::string HttpServers::shown(std::string body) const {
  constexpr std::string_view kBlot = "***";
  const std::string& secret = options_.secret;
  std::size_t at = secret.empty() ? body.npos : body.find(secret);
  for (; at != body.npos; at = body.find(secret, at + kBlot.size()))
    body.replace(at, secret.size(), kBlot);
  return printed(body);
}

struct HttpServers::Request {
  std::shared_ptr<const std::string> body;
  core::Duration deadline;
  core::TimePoint begun;
  ServerBoard::Tried tried;
  std::size_t running = 0;  // attempts without an end
  // The newest attempt that is no copy.
  Place last = 0;
  core::TimePoint last_sent{};
  bool last_ended = false;
  std::vector<std::string> causes;  // why servers were away
  std::optional<core::Result<Reply>> outcome;
  std::shared_ptr<async::Event> ended;  // fired at the end of an attempt

  // The first outcome counts.
  void settle(core::Result<Reply> what) {
    if (!outcome) outcome.emplace(std::move(what));
  }
};

void HttpServers::begin(const RoleContext& context) {
  context_ = context;
  silences_.resize(urls_.size());
  room_.emplace(*context_.timers);
}

async::task<core::Result<HttpServers::Reply>> HttpServers::post(std::string body,
                                                                core::Duration deadline) {
  co_await gate_.enter();
  const core::AtExit leave([this] { gate_.leave(); });
  auto request = std::make_shared<Request>();
  request->body = std::make_shared<const std::string>(std::move(body));
  request->deadline = deadline;
  request->begun = context_.timers->now();
  request->tried.assign(urls_.size(), false);
  ++requests_;
  auto reply = co_await post_inside(request);
  co_return reply;
}

async::task<core::Result<HttpServers::Reply>> HttpServers::post_inside(
    std::shared_ptr<Request> request) {
  auto executor = co_await boost::asio::this_coro::executor;
  bool elsewhere = true;  // the request is to be sent to a server, the first or another one
  std::optional<core::TimePoint> first_sent;
  while (!request->outcome) {
    const core::TimePoint now = context_.timers->now();
    const bool in_time = !first_sent || now - *first_sent < request->deadline;
    if (elsewhere && in_time) {
      bool busy = false;
      auto place = board_.pick(request->tried, now);
      const bool wait_for_well = !place && board_.may_have_room(request->tried, now);
      if (!place && !wait_for_well && request->running == 0) {
        place = board_.last_resort(request->tried, request->begun, now, busy);
        if (!place) co_return nobody(*request);
      }
      if (place && !busy) {
        if (first_sent) ++moved_;
        if (!first_sent) first_sent = now;
        send(request, *place, false);
        if (const auto other = board_.probe(request->tried, now)) send(request, *other, true);
        elsewhere = false;
        continue;
      }
      if (wait_for_well || busy) {
        co_await room_->wait(async::Deadline::none());
        continue;
      }
    }
    if (request->running == 0) {
      if (!in_time) co_return nobody(*request);
      elsewhere = true;
      continue;
    }
    request->ended = std::make_shared<async::Event>();
    async::Timer timer;
    if (in_time) {
      std::function<void()> fire = [ended = request->ended] { ended->fire(); };
      const core::TimePoint over = request->last_sent + board_.patience(request->deadline);
      const core::TimePoint look = over > now ? std::min(over, now + kLook) : now + kLook;
      timer = context_.timers->arm(executor, look, std::move(fire));
    }
    co_await async::Event::wait(request->ended);
    timer.disarm();
    elsewhere = leave(*request);
  }
  co_return std::move(*request->outcome);
}

// Whether the request is to be sent to another server: the newest attempt has failed, or is silent
// at a server that is not well.
bool HttpServers::leave(Request& request) {
  if (request.last_ended) return true;
  const core::TimePoint now = context_.timers->now();
  const bool last_one = std::count(request.tried.begin(), request.tried.end(), false) == 0;
  if (last_one) return false;
  if (board_.suspected(request.last)) return true;
  return board_.suspect(request.last, request.last_sent, now, request.deadline);
}

core::Failure HttpServers::nobody(const Request& request) const {
  std::string text = core::joined(request.causes, "; ");
  for (Place place = 0; place < urls_.size(); ++place) {
    const bool silent = !request.tried[place] && board_.silent(place, context_.timers->now());
    if (silent) text += (text.empty() ? "" : "; ") + silences_[place];
  }
  if (text.empty())
    text = "each " + options_.what + " has failed while this request waited for one";
  return core::fail(ErrorCode::kPeerLost, text);
}

void HttpServers::send(const std::shared_ptr<Request>& request, Place place, bool copy) {
  request->tried[place] = true;
  if (!copy) {
    request->last = place;
    request->last_sent = context_.timers->now();
    request->last_ended = false;
  }
  ++request->running;
  board_.sent(place);
  context_.scope->spawn("", attempt(request, place));
}

async::task<void> HttpServers::attempt(std::shared_ptr<Request> request, Place place) {
  const core::TimePoint sent = context_.timers->now();
  std::string body = *request->body;
  net::HttpHeaders headers = options_.headers;
  auto reply = co_await client_.post_json(urls_[place], std::move(body), request->deadline,
                                          std::move(headers));
  --request->running;
  if (place == request->last) request->last_ended = true;
  take(*request, place, sent, std::move(reply));
  if (request->ended) request->ended->fire();
  room_->notify_all();
}

void HttpServers::take(Request& request,
                       Place place,
                       core::TimePoint sent,
                       core::Result<net::HttpReply> reply) {
  const core::TimePoint now = context_.timers->now();
  const std::string where = options_.what + " " + urls_[place];
  const bool good = reply && reply->status >= 200 && reply->status <= 299;
  const std::string sick = good && options_.sick ? options_.sick(*reply) : std::string();
  if (!sick.empty()) {
    board_.failed(place, now);
    request.causes.push_back(where + " answered with status " + std::to_string(reply->status) +
                             ", but " + sick + ": '" + shown(reply->body) + "'");
  } else if (reply && means_away(reply->status)) {
    board_.failed(place, now);
    keep_silence(place, *reply);
    request.causes.push_back(where + " answered with status " + std::to_string(reply->status) +
                             ": '" + shown(reply->body) + "'");
  } else if (reply) {
    board_.answered(place, sent, now, request.deadline);
    request.settle(Reply{urls_[place], std::move(*reply)});
  } else if (reply.error().code == ErrorCode::kDeadline) {
    board_.late(place, sent, now, request.deadline);
    request.causes.push_back(options_.what + " " + reply.error().message +
                             " (--reward.deadline_s)");
  } else if (reply.error().code == ErrorCode::kPeerLost) {
    board_.failed(place, now);
    request.causes.push_back(options_.what + " " + reply.error().message);
  } else {
    board_.failed(place, now);
    request.settle(core::fail(reply.error().code, options_.what + " " + reply.error().message));
  }
}

void HttpServers::keep_silence(Place place, const net::HttpReply& reply) {
  const std::string_view text = net::find_header(reply.headers, "retry-after");
  const auto seconds = core::number_of<std::uint64_t>(text);
  if (!seconds) return;
  board_.silence(place,
                 context_.timers->now() + std::chrono::seconds(std::min(*seconds, kSilence_s_max)));
  silences_[place] = options_.what + " " + urls_[place] + " answered with status " +
                     std::to_string(reply.status) + " and asked not to be called for " +
                     std::string(text) + " s";
}

wire::Amounts HttpServers::amounts() const {
  std::size_t away = 0;
  for (Place place = 0; place < urls_.size(); ++place)
    away += board_.well(place) ? 0 : 1;
  return {{"requests", static_cast<double>(requests_)},
          {"moved", static_cast<double>(moved_)},
          {"in_flight", static_cast<double>(board_.in_flight())},
          {"connections", static_cast<double>(client_.connections_opened())},
          {"servers", static_cast<double>(urls_.size())},
          {"servers_away", static_cast<double>(away)}};
}

}  // namespace troupe::actors::reward
