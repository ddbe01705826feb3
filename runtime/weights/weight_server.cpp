#include "runtime/weights/weight_server.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/weights/limits.hpp"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace troupe::weights {
namespace {

constexpr int kLookForFiles_ms = 100;  // between two looks for a descriptor that is free

constexpr std::size_t kNobody = ~std::size_t{0};

core::TimePoint now() {
  return std::chrono::steady_clock::now();
}

void signal(const net::OwnedFd& event) {
  const std::uint64_t one = 1;
  TROUPE_CHECK(::write(event.get(), &one, sizeof one) == sizeof one, "waking the weight server");
}

bool would_block() {
  return errno == EAGAIN || errno == EINTR;
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
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
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
  for (Reader& reader : readers_)
    end_leases(reader);
}

void WeightServer::drop(std::size_t place) {
  book_.leave(readers_[place].number(), readers_[place].turn);
  end_leases(readers_[place]);
  readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(place));
}

void WeightServer::end_leases(Reader& reader) {
  stop_keeping(reader);
  shelf(reader).pool.end_lease(reader.lease);
  shelf(reader).device_pool.end_lease(reader.device_lease);
}

// The reader's snapshot is no longer kept for it; for nobody if no other reader needs it.
void WeightServer::stop_keeping(Reader& reader) {
  if (!std::exchange(reader.keeps, false)) return;
  const bool on_device = reader.device_lease != nullptr;
  const bool needed = std::any_of(readers_.begin(), readers_.end(), [&](const Reader& other) {
    return other.keeps && (other.device_lease != nullptr) == on_device &&
           &shelf(other) == &shelf(reader);
  });
  if (needed) return;
  on_device ? shelf(reader).device_pool.keep_none() : shelf(reader).pool.keep_none();
}

ServerCounters WeightServer::counters() const {
  return {served_.load(),     served_on_device_.load(), refused_.load(),
          cut_.load(),        readers_now_.load(),      queued_now_.load(),
          taken_back_.load(), idle_now_.load(),         accepted_.load(),
          sent_on_.load(),    handed_on_.load(),        streamed_bytes_.load()};
}

void WeightServer::loop() {
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
    for (const Reader& reader : readers_) {
      const bool streams = reader.state == State::kStream;
      const int events = !streams ? POLLIN : reader.starved ? POLLRDHUP : POLLOUT | POLLRDHUP;
      entries.push_back({reader.socket.get(), static_cast<short>(events), 0});
    }
    const int wait_ms = poll_timeout_ms(now());
    const bool look_again = !files && (wait_ms < 0 || wait_ms > kLookForFiles_ms);
    ::poll(entries.data(), entries.size(), look_again ? kLookForFiles_ms : wait_ms);
    if (entries[0].revents != 0) return;
    for (std::size_t i = readers_.size(); i-- > 0;) {
      Reader& reader = readers_[i];
      const short events = entries[4 + i].revents;
      const bool late = now() >= reader.until;
      if (events == 0 && !late) continue;
      if (events != 0 ? go_on(reader, events) : stays_late(reader)) continue;
      if (events == 0) ++cut_;
      drop(i);
    }
    if (entries[1].revents != 0) {
      take_back();
      go_on_streaming();
    }
    serve_queue();
    if (entries[2].revents != 0) accept_from(listeners_.unix_listener, Wants::kMemory);
    if (entries[3].revents != 0) accept_from(listeners_.tcp_listener, Wants::kStream);
    const std::size_t idle = count(State::kIdle);
    idle_now_ = idle;
    readers_now_ = readers_.size() - idle;
    queued_now_ = count(State::kQueued);
  }
}

// Ends the leases of the snapshots that the publisher needs. The receiver of a stream sees its
// connection reset. A receiver of shared or device memory gets a byte: it may read on, but throws
// away what it made (ImageIntake).
void WeightServer::take_back() {
  std::uint64_t signals = 0;
  (void)!::read(wake_.get(), &signals, sizeof signals);
  for (std::size_t i = readers_.size(); i-- > 0;) {
    Reader& reader = readers_[i];
    if (!shelf(reader).pool.wants_back(reader.lease) &&
        !shelf(reader).device_pool.wants_back(reader.device_lease)) {
      continue;
    }
    cut_receivers_.add(reader.number());
    ++taken_back_;
    if (reader.way == Wants::kMemory) {
      (void)!::send(reader.socket.get(), &kTakenBack, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      const linger at_once{1, 0};
      ::setsockopt(reader.socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    drop(i);
  }
}

// The place of the one that has waited longest of those that may be served.
std::size_t WeightServer::next_in_queue() {
  if (leases() >= limits::kWeightReaders_max) return kNobody;
  std::size_t found = kNobody;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    const Reader& reader = readers_[i];
    if (reader.state != State::kQueued) continue;
    if (found != kNobody && readers_[found].turn < reader.turn) continue;
    // Source 0 has let those in who ask for one version.
    const bool waits =
        reader.way == Wants::kStream && reader.hello.exact == 0 && shelf(reader).pool.keeps_older();
    if (waits && cut_receivers_.contains(reader.number())) continue;
    if (waits_for_image(reader)) continue;
    found = i;
  }
  return found;
}

// Whether the version that the reader asks for is still to come here, as far as this server knows.
bool WeightServer::waits_for_image(const Reader& reader) {
  const Wants wants = reader.hello.wants;
  ImageShelves::Shelf& its = shelf(reader);
  const bool leads = !work_.relay && work_.source == 0;
  if (wants == Wants::kDevice || (leads && &its == &shelves_.of(work_.main))) return false;
  std::shared_ptr<Snapshot> newest = its.pool.lease_newest();
  const bool there = newest != nullptr && newest->version() >= reader.hello.at_least &&
                     !newest->abandoned() && (wants == Wants::kStream || newest->complete());
  its.pool.end_lease(newest);
  return !there;
}

void WeightServer::serve_queue() {
  for (std::size_t i = next_in_queue(); i != kNobody; i = next_in_queue())
    if (!answer(readers_[i])) drop(i);
}

// Called when a connection's deadline has passed. Sets a new one and returns true if the connection
// may stay: it waits in the queue, it holds memory that is no longer kept for it, or its receiver
// has taken bytes since the last check.
bool WeightServer::stays_late(Reader& reader) {
  if (reader.state == State::kQueued) {
    Answer wait;
    wait.status = AnswerStatus::kQueued;
    reader.until = now() + limits::kWeightQueueSign;
    return ::send(reader.socket.get(), &wait, sizeof wait, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           sizeof wait;
  }
  if (reader.keeps && reader.state == State::kHeld) {
    stop_keeping(reader);
    reader.until = core::TimePoint::max();
    return true;
  }
  if (reader.state != State::kStream) return false;
  // On a slow link it takes long until enough of the send buffer is free for poll to report it, so
  // count the bytes that have left the buffer.
  int unsent = 0;
  if (::ioctl(reader.socket.get(), SIOCOUTQ, &unsent) != 0) return false;
  const std::uint64_t taken = reader.sent - static_cast<std::uint64_t>(unsent);
  if (taken <= reader.taken) return false;
  reader.taken = taken;
  reader.until = now() + limits::kWeightStall;
  return true;
}

int WeightServer::poll_timeout_ms(core::TimePoint from) const {
  core::TimePoint next = core::TimePoint::max();
  for (const Reader& reader : readers_)
    next = std::min(next, reader.until);
  if (next == core::TimePoint::max()) return -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(next - from).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

void WeightServer::accept_from(const net::OwnedFd& listener, Wants way) {
  net::OwnedFd socket = net::accept_one(listener);
  if (!socket || (way == Wants::kMemory && !net::same_user(socket.get()))) return;
  ++accepted_;
  Reader reader;
  reader.socket = std::move(socket);
  reader.way = way;
  reader.until = now() + limits::kWeightHello;
  readers_.push_back(std::move(reader));
}

std::size_t WeightServer::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(),
                    [state](const Reader& reader) { return reader.state == state; }));
}

// Connections without a request, of those that this listener took.
std::size_t WeightServer::strangers(Wants way) const {
  return static_cast<std::size_t>(std::count_if(
      readers_.begin(), readers_.end(),
      [way](const Reader& reader) { return reader.state == State::kHello && reader.way == way; }));
}

std::size_t WeightServer::leases() const {
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(), [](const Reader& reader) {
        return reader.lease != nullptr || reader.device_lease != nullptr;
      }));
}

bool WeightServer::go_on(Reader& reader, short events) {
  switch (reader.state) {
    case State::kHello:
    case State::kIdle:
      return read_hello(reader);
    case State::kStream:
      if ((events & (POLLERR | POLLHUP | POLLRDHUP)) == 0) return stream(reader);
      ++cut_;
      return false;
    case State::kHeld:
      return still_held(reader);
    case State::kQueued:
      return still_queued(reader);
    case State::kSentOn:
      return read_reports(reader);
  }
  return false;
}

// A hello that comes with a connection was sent to source 0: the reader is at that connection.
bool WeightServer::read_hello(Reader& reader) {
  char* const into = reinterpret_cast<char*>(&reader.hello) + reader.hello_bytes;
  net::OwnedFd passed;
  const ssize_t n =
      net::receive_some(reader.socket, into, sizeof(Hello) - reader.hello_bytes, passed);
  if (n < 0 && would_block()) return true;
  if (n <= 0) {
    if (reader.state == State::kHello || reader.hello_bytes > 0) ++cut_;
    return false;
  }
  if (passed) {
    reader.socket = std::move(passed);
    reader.way = Wants::kStream;
  }
  if (reader.hello_bytes == 0) reader.until = now() + limits::kWeightHello;
  reader.hello_bytes += static_cast<std::size_t>(n);
  if (reader.hello_bytes >= sizeof kPushMagic && reader.hello.magic != kPushMagic) {
    ++refused_;
    return false;
  }
  return reader.hello_bytes < sizeof(Hello) || check_hello(reader);
}

// Gives the connection of a stream to the source that it is for, and always returns false: it is no
// longer this server's.
bool WeightServer::hand_on(Reader& reader) {
  const auto there = net::connect_unix(work_.sources[reader.hello.source], now());
  if (there && net::send_with_fd(*there, &reader.hello, sizeof(Hello), reader.socket.get())) {
    ++handed_on_;
  } else {
    ++cut_;
  }
  return false;
}

// Puts the reader into the queue, which `serve_queue` looks at before anything else happens, or
// refuses it.
bool WeightServer::check_hello(Reader& reader) {
  const Wants wants = reader.hello.wants;
  const std::uint32_t source = reader.hello.source;
  const bool for_other = source != work_.source && work_.source == 0 &&
                         source < work_.sources.size() && reader.way == Wants::kStream &&
                         wants == Wants::kStream;
  Answer refusal;
  if (!core::same_secret({reader.hello.secret, kSecret_chars}, secret_)) {
    refusal.status = AnswerStatus::kWrongKey;
  } else if (for_other) {
    return hand_on(reader);
  } else if (source != work_.source) {
    refusal.status = AnswerStatus::kMalformed;
  } else if (!ImageShelves::is_type(reader.hello.image)) {
    refusal.status = AnswerStatus::kMalformed;
  } else if (wants != reader.way && (wants != Wants::kDevice || reader.way != Wants::kMemory)) {
    refusal.status = AnswerStatus::kMalformed;
  } else if (count(State::kQueued) >= limits::kWeightQueue_max) {
    refusal.status = AnswerStatus::kTooMany;
  } else {
    reader.state = State::kQueued;
    reader.turn = ++turns_;
    reader.hello.place.socket[sizeof reader.hello.place.socket - 1] = 0;
    reader.hello.place.address[sizeof reader.hello.place.address - 1] = 0;
    shelf(reader).wanted = limits::kWeightImage_publications;
    reader.until = now() + limits::kWeightQueueSign;
    return true;
  }
  ++refused_;
  (void)!::send(reader.socket.get(), &refusal, sizeof refusal, MSG_NOSIGNAL);
  return false;
}

// A queued receiver sends nothing, so readable input means that it disconnected.
bool WeightServer::still_queued(Reader& reader) {
  char none = 0;
  const bool there = ::recv(reader.socket.get(), &none, 1, 0) < 0 && would_block();
  if (!there) ++cut_;
  return there;
}

}  // namespace troupe::weights
