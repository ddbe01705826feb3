#include "runtime/weights/weight_server.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/weights/limits.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace troupe::weights {
namespace {

using Outcome = WeightReader::Outcome;
using State = WeightReader::State;

constexpr int kLookForFiles_ms = 100;  // between two looks for a descriptor that is free

constexpr std::size_t kNobody = ~std::size_t{0};

core::TimePoint now() {
  return core::steady_clock().now();
}

void signal(const net::OwnedFd& event) {
  const std::uint64_t one = 1;
  TROUPE_CHECK(::write(event.get(), &one, sizeof one) == sizeof one, "waking the weight server");
}

net::OwnedFd new_event() {
  net::OwnedFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw std::system_error(errno, std::generic_category(), "the weight server");
  return event;
}

// The timeout for poll; -1: none.
int ms_until(core::TimePoint end) {
  if (end == core::TimePoint::max()) return -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(end - now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

// Gives the connection of a stream to the source that it is for.
bool hand_on(const WeightReader& reader, const std::string& source) {
  const auto there = net::connect_unix(source, now());
  return there && net::send_with_fd(*there, &reader.hello(), sizeof(Hello), reader.socket().get());
}

}  // namespace

WeightServer::WeightServer(Listeners listeners,
                           std::string secret,
                           ImageShelves& shelves,
                           Work work)
    : listeners_(std::move(listeners)),
      secret_(std::move(secret)),
      shelves_(shelves),
      work_(work),
      stop_(new_event()),
      wake_(new_event()) {
  for (ImageShelves::Shelf& shelf : shelves_.all()) {
    shelf.pool.on_want_back([this] { look(); });
    shelf.device_pool.on_want_back([this] { look(); });
  }
  thread_ = std::thread([this] { loop(); });
}

void WeightServer::look() {
  signal(wake_);
}

WeightServer::~WeightServer() {
  signal(stop_);
  thread_.join();
  for (WeightReader& reader : readers_)
    reader.end_lease();
}

void WeightServer::drop(std::size_t place) {
  book_.leave(readers_[place].number(), readers_[place].turn());
  readers_[place].end_lease();
  readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(place));
}

ServerCounters WeightServer::counters() const {
  return {counts_.served,   counts_.served_on_device, counts_.refused,    counts_.cut,
          counts_.readers,  counts_.queued,           counts_.taken_back, counts_.idle,
          counts_.accepted, counts_.sent_on,          counts_.handed_on,  counts_.streamed_bytes};
}

void WeightServer::loop() {
  const auto strangers = [this](Wants way) {  // without a request, of those that a listener took
    return static_cast<std::uint64_t>(std::ranges::count_if(readers_, [way](const auto& one) {
      return one.state() == State::kHello && one.way() == way;
    }));
  };
  std::vector<pollfd> entries;
  for (;;) {
    entries.clear();
    entries.push_back({stop_.get(), POLLIN, 0});
    entries.push_back({wake_.get(), POLLIN, 0});
    const bool files = core::has_room_for_strangers(stop_.get());
    const bool ours = strangers(Wants::kMemory) < limits::kWeightStrangers_max;
    const bool others = files && strangers(Wants::kStream) < others_max_;
    entries.push_back({ours ? listeners_.unix_listener.get() : -1, POLLIN, 0});
    entries.push_back({others ? listeners_.tcp_listener.get() : -1, POLLIN, 0});
    core::TimePoint next = core::TimePoint::max();
    for (const WeightReader& reader : readers_) {
      entries.push_back(reader.awaited());
      next = std::min(next, reader.until());
    }
    const int wait_ms = ms_until(next);
    const bool look_again = !files && (wait_ms < 0 || wait_ms > kLookForFiles_ms);
    ::poll(entries.data(), entries.size(), look_again ? kLookForFiles_ms : wait_ms);
    if (entries[0].revents != 0) return;
    for (std::size_t i = readers_.size(); i-- > 0;) {
      WeightReader& reader = readers_[i];
      const short events = entries[4 + i].revents;
      if (events == 0 && now() < reader.until()) continue;
      const Outcome outcome =
          events != 0 ? reader.go_on(events, counts_.streamed_bytes) : reader.go_on_late();
      if (!follow(reader, outcome)) drop(i);
    }
    if (entries[1].revents != 0) look_at_snapshots();
    serve_queue();
    if (entries[2].revents != 0) accept_from(listeners_.unix_listener, Wants::kMemory);
    if (entries[3].revents != 0) accept_from(listeners_.tcp_listener, Wants::kStream);
    const std::size_t idle = count(State::kIdle);
    counts_.idle = idle;
    counts_.readers = readers_.size() - idle;
    counts_.queued = count(State::kQueued);
  }
}

void WeightServer::accept_from(const net::OwnedFd& listener, Wants way) {
  net::OwnedFd socket = net::accept_one(listener);
  if (!socket || (way == Wants::kMemory && !net::same_user(socket.get()))) return;
  ++counts_.accepted;
  readers_.emplace_back(std::move(socket), way);
}

std::size_t WeightServer::count(State state) const {
  return static_cast<std::size_t>(
      std::ranges::count(readers_, state, [](const auto& reader) { return reader.state(); }));
}

// Ends the leases of the snapshots that the publisher needs, and goes on with streams that wait for
// more of theirs.
void WeightServer::look_at_snapshots() {
  std::uint64_t signals = 0;
  (void)!::read(wake_.get(), &signals, sizeof signals);
  for (std::size_t i = readers_.size(); i-- > 0;) {
    if (!readers_[i].lease().is_wanted_back()) continue;
    cut_receivers_.add(readers_[i].number());
    ++counts_.taken_back;
    readers_[i].take_back();
    drop(i);
  }
  for (std::size_t i = readers_.size(); i-- > 0;)
    if (!follow(readers_[i], readers_[i].resume(counts_.streamed_bytes))) drop(i);
}

bool WeightServer::follow(WeightReader& reader, Outcome outcome) {
  switch (outcome) {
    case Outcome::kStays:
      return true;
    case Outcome::kAsks:
      return admit(reader);
    case Outcome::kProgress:
      book_.progress(reader.number(), reader.buckets_reported(), now());
      return true;
    case Outcome::kDone:
      cut_receivers_.forget(reader.number());
      if (reader.way() == Wants::kMemory) return false;
      ++counts_.served;
      if (count(State::kIdle) >= limits::kWeightIdle_max) return false;
      book_.progress(reader.number(), ~std::uint32_t{0}, now());
      reader.rest();
      return true;
    case Outcome::kCut:
      ++counts_.cut;
      return false;
    case Outcome::kRefused:
      ++counts_.refused;
      return false;
    case Outcome::kLeaves:
      return false;
  }
  return false;
}

// Puts the reader into the queue, which `serve_queue` looks at before anything else happens, or
// refuses it.
bool WeightServer::admit(WeightReader& reader) {
  const Hello& hello = reader.hello();
  const Wants wants = hello.wants, way = reader.way();
  const bool for_other = hello.source != work_.source && work_.source == 0 &&
                         hello.source < work_.sources.size() && way == Wants::kStream &&
                         wants == Wants::kStream;
  const bool fits = hello.source == work_.source && ImageShelves::is_type(hello.image) &&
                    (wants == way || (wants == Wants::kDevice && way == Wants::kMemory));
  Answer refusal;
  if (!core::same_secret({hello.secret, kSecret_chars}, secret_)) {
    refusal.status = AnswerStatus::kWrongKey;
  } else if (for_other) {  // it leaves this server
    ++(hand_on(reader, work_.sources[hello.source]) ? counts_.handed_on : counts_.cut);
    return false;
  } else if (!fits) {
    refusal.status = AnswerStatus::kMalformed;
  } else if (count(State::kQueued) >= limits::kWeightQueue_max) {
    refusal.status = AnswerStatus::kTooMany;
  } else {
    shelves_.of(hello.image).wanted = limits::kWeightImage_publications;
    reader.queue(++turns_);
    return true;
  }
  (void)reader.say(&refusal, sizeof refusal);
  return follow(reader, Outcome::kRefused);
}

// The place of the one that has waited longest of those that may be served.
std::size_t WeightServer::next_in_queue() {
  const auto leases = std::ranges::count_if(
      readers_, [](const WeightReader& reader) { return static_cast<bool>(reader.lease()); });
  if (static_cast<std::uint64_t>(leases) >= limits::kWeightReaders_max) return kNobody;
  std::size_t found = kNobody;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    const WeightReader& reader = readers_[i];
    if (reader.state() != State::kQueued) continue;
    if (found != kNobody && readers_[found].turn() < reader.turn()) continue;
    // Source 0 has let those in who ask for one version.
    const bool waits = reader.way() == Wants::kStream && reader.hello().exact == 0 &&
                       shelves_.of(reader.hello().image).pool.keeps_older();
    if (waits && cut_receivers_.contains(reader.number())) continue;
    if (waits_for_image(reader)) continue;
    found = i;
  }
  return found;
}

// Whether the version that the reader asks for is still to come here, as far as this server knows.
bool WeightServer::waits_for_image(const WeightReader& reader) {
  const Wants wants = reader.hello().wants;
  ImageShelves::Shelf& its = shelves_.of(reader.hello().image);
  const bool leads = !work_.relay && work_.source == 0;
  if (wants == Wants::kDevice || (leads && &its == &shelves_.of(work_.main))) return false;
  std::shared_ptr<Snapshot> newest = its.pool.lease_newest();
  const bool there = newest != nullptr && newest->version() >= reader.hello().at_least &&
                     !newest->abandoned() && (wants == Wants::kStream || newest->complete());
  its.pool.end_lease(newest);
  return !there;
}

void WeightServer::serve_queue() {
  for (std::size_t i = next_in_queue(); i != kNobody; i = next_in_queue())
    if (!answer(readers_[i])) drop(i);
}

bool WeightServer::answer(WeightReader& reader) {
  const bool keep = cut_receivers_.contains(reader.number()) || reader.hello().keep != 0;
  Answer reply = reader.take_lease(shelves_.of(reader.hello().image), keep);
  if (reply.status != AnswerStatus::kHere) {
    (void)reader.say(&reply, sizeof reply);
    return false;
  }
  const bool on_device = reader.lease().device() != nullptr;
  std::span<const std::string> others;
  if (work_.source == 0 && !work_.sources.empty() && !on_device) {
    others = std::span(work_.sources).subspan(1);
    reply.sources = static_cast<std::uint32_t>(work_.sources.size());
  }
  if (reader.way() == Wants::kStream)
    return is_sent_on(reader) || follow(reader, reader.begin_stream(reply, counts_.streamed_bytes));
  ++counts_.served;  // before it is sent: its receiver may look at the counts
  if (on_device) ++counts_.served_on_device;
  if (reader.lend(reply, others)) return true;
  if (on_device) --counts_.served_on_device;
  --counts_.served;
  return follow(reader, Outcome::kCut);
}

// Tells the reader of a relay, if there is one for it. A receiver whose relay took an older version
// back counts as cut, and is served here.
bool WeightServer::is_sent_on(WeightReader& reader) {
  const Hello& hello = reader.hello();
  if (work_.relay || hello.relays == 0) return false;
  const Snapshot& newest = *reader.lease().host();
  if (hello.fault == RelayFault::kLost && hello.begun != 0 && hello.begun < newest.version()) {
    cut_receivers_.add(reader.number());
  }
  for (const WeightReader& other : readers_)  // those that this server feeds
    book_.progress(other.number(), other.buckets_taken(), now());
  RelayBook::Ask ask;
  ask.place = hello.place;
  ask.host = hello.host;
  ask.turn = reader.turn();
  ask.content = {image_type(hello.image), newest.version(), newest.shape().buckets};
  if (hello.begun == newest.version()) ask.buckets = std::min(hello.buckets, ask.content.all);
  ask.avoid = hello.avoid;
  ask.fault = hello.fault;
  ask.direct =
      cut_receivers_.contains(reader.number()) || count(State::kSentOn) >= limits::kWeightIdle_max;
  const std::optional<RelayPlace> relay = book_.choose(ask, now());
  if (!relay) return false;
  ++counts_.sent_on;
  reader.send_on(newest.version(), *relay);
  return true;
}

}  // namespace troupe::weights
