// The receiver's side of push_protocol.hpp: sends the hello, reads the answer, and gets the
// snapshot from device memory, from shared memory or by TCP. Checks what it receives before use.
#include "runtime/weights/remote_subscriber.hpp"

#include "runtime/weights/stream_fetch.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::weights {
namespace {

// An answer with its shared memory.
struct Lent {
  Answer answer;
  net::OwnedFd memory;
};

core::Result<void> ask_for_memory(const net::OwnedFd& socket,
                                  const Hello& hello,
                                  const std::string& source,
                                  net::Patience patience,
                                  Lent& lent) {
  TROUPE_TRY(send_all(socket, &hello, sizeof hello, patience, "asking for weights"));
  do {
    TROUPE_TRY(receive_with_fd(socket, &lent.answer, sizeof lent.answer, lent.memory, patience,
                               "the answer of " + source));
  } while (lent.answer.says(AnswerStatus::kQueued));
  TROUPE_TRY(check_answer(lent.answer, hello.at_least, source));
  if (!lent.memory) return fail(ErrorCode::kData, source + " answered without its shared memory");
  return {};
}

}  // namespace

RemoteWeightSubscriber::RemoteWeightSubscriber(const model::ModelSpec& spec,
                                               kernels::PanelDtype dtype,
                                               std::string host_id,
                                               core::Memory& memory,
                                               RelayOptions relays)
    : image_(image_type(dtype)),
      shape_(spec, dtype),
      host_id_(std::move(host_id)),
      number_(static_cast<std::uint32_t>(random_id() | 1)),
      memory_(memory),
      relays_(std::move(relays)),
      shadows_(std::make_shared<ShadowPool>(spec, dtype, memory)),
      opened_(shape_) {}

ServerCounters RemoteWeightSubscriber::relay_counters() const {
  const std::lock_guard lock(mutex_);
  return relay_ != nullptr ? relay_->counters() : ServerCounters{};
}

core::Result<Hello> RemoteWeightSubscriber::hello_to(const WeightLocation& location,
                                                     core::Version at_least,
                                                     Wants wants) {
  TROUPE_TRY_ASSIGN(key, parts_of_key(location.key));
  Hello hello;
  hello.at_least = at_least;
  hello.wants = wants;
  hello.image = image_;
  hello.host = host_number(host_id_);
  hello.place.number = number_;
  key.secret.copy(hello.secret, kSecret_chars);
  return hello;
}

core::Result<std::unique_ptr<WeightIntake>> RemoteWeightSubscriber::fetch(
    core::Version at_least, const WeightLocation& location, core::Duration span) {
  if (closed_) return fail(ErrorCode::kClosed, "this process no longer fetches weights");
  const net::Patience patience{span, &closed_};
  const auto wrap =
      [&](core::Result<ArrivedImage> image) -> core::Result<std::unique_ptr<WeightIntake>> {
    if (!image) return image.failure();
    return std::unique_ptr<WeightIntake>(
        std::make_unique<ImageIntake>(std::move(*image), shadows_));
  };
  const bool same_host = !location.socket.empty() && location.host_id == host_id_;
  if (same_host && !memory_.shared_name().empty()) {
    auto image = from_device(at_least, location, patience);
    if (!image) return image.failure();
    if (*image) return wrap(std::move(**image));
  }
  if (same_host) {
    auto socket = net::connect_unix(location.socket, std::chrono::steady_clock::now() + span);
    if (socket) return wrap(from_memory(std::move(*socket), at_least, location, patience));
    if (location.tcp_port == 0) return socket.failure();
  }
  if (location.tcp_port == 0) {
    return fail(ErrorCode::kPeerLost, "the weights are only in the shared memory of another host",
                "let the policy's node serve them by TCP");
  }
  return wrap(from_stream(at_least, location, patience));
}

core::Result<std::optional<ArrivedImage>> RemoteWeightSubscriber::from_device(
    core::Version at_least, const WeightLocation& location, net::Patience patience) {
  auto socket =
      net::connect_unix(location.socket, std::chrono::steady_clock::now() + patience.span);
  if (!socket) return std::optional<ArrivedImage>();  // the other ways report what is wrong
  TROUPE_TRY_ASSIGN(hello, hello_to(location, at_least, Wants::kDevice));
  TROUPE_TRY(send_all(*socket, &hello, sizeof hello, patience, "asking for weights"));
  const auto read = [&](void* into, std::size_t size, const std::string& what) {
    return receive_all(*socket, into, size, patience, what);
  };
  TROUPE_TRY_ASSIGN(answer, read_answer(read, location.socket));
  if (answer.says(AnswerStatus::kNoDevice)) return std::optional<ArrivedImage>();
  TROUPE_TRY(check_answer(answer, at_least, location.socket));
  DevicePlace place;
  TROUPE_TRY(read(&place, sizeof place, "the answer of " + location.socket));
  if (memory_.shared_name() != place.device.text()) return std::optional<ArrivedImage>();
  TROUPE_TRY_ASSIGN(image, open_device(answer, place, location.socket, *socket));
  // Without data the system refuses; fall back on host memory.
  if (image.parts.empty()) return std::optional<ArrivedImage>();
  return std::optional<ArrivedImage>(std::move(image));
}

// Opens the memory only while the lease lasts: afterwards the publisher may free it.
core::Result<ArrivedImage> RemoteWeightSubscriber::open_device(const Answer& answer,
                                                               DevicePlace place,
                                                               const std::string& source,
                                                               net::OwnedFd& lease) {
  if (answer.bytes != shape_.image_bytes || place.layout_hash != shape_.layout_hash) {
    return fail(ErrorCode::kData,
                source + ": names, shapes or storage of the tensors differ from this model's",
                "trainer and engine must load the same model");
  }
  core::Memory::SharedHandle handle;
  std::copy(std::begin(place.handle), std::end(place.handle), handle.begin());
  ArrivedImage image;
  void* const data = memory_.open_shared(handle);
  if (data == nullptr) return image;
  image.version = answer.version;
  image.shape = shape_;
  image.on_device = true;
  std::shared_ptr<const void> owner(
      data, [&memory = memory_](void* start) { memory.close_shared(start); });
  image.parts.push_back({static_cast<const char*>(data), std::move(lease), std::move(owner)});
  image.verified = true;  // nothing travelled
  return image;
}

core::Result<ArrivedImage> RemoteWeightSubscriber::from_memory(net::OwnedFd socket,
                                                               core::Version at_least,
                                                               const WeightLocation& location,
                                                               net::Patience patience) {
  TROUPE_TRY_ASSIGN(key, parts_of_key(location.key));
  TROUPE_TRY_ASSIGN(hello, hello_to(location, at_least, Wants::kMemory));
  Lent first;
  TROUPE_TRY(ask_for_memory(socket, hello, location.socket, patience, first));
  const std::uint32_t sources = first.answer.sources;
  TROUPE_TRY(check_sources(first.answer, location.socket));
  std::vector<SourcePlace> places(sources - 1);
  TROUPE_TRY(receive_all(socket, places.data(), places.size() * sizeof(SourcePlace), patience,
                         "the answer of " + location.socket));
  auto image = opened_.open(first.answer, first.memory, key.public_key, {0, sources});
  if (!image && is_taken_back(socket)) return taken_back(first.answer.version);
  if (!image) return image;
  image->parts.front().lease = std::move(socket);
  hello.at_least = first.answer.version;
  hello.exact = 1;
  hello.keep = first.answer.kept != 0 ? 1 : 0;
  for (std::uint32_t source = 1; source < sources; ++source) {
    hello.source = source;
    TROUPE_TRY_ASSIGN(part, from_source(places[source - 1].socket.text(), hello, {source, sources},
                                        key.public_key, patience));
    if (part.table != image->table) {
      return fail(ErrorCode::kData, "source " + std::to_string(source) +
                                        " of the weights has other checksums than the publisher");
    }
    image->parts.push_back(std::move(part.parts.front()));
  }
  return image;
}

// Fetches the share of a version that another source than the publisher has.
core::Result<ArrivedImage> RemoteWeightSubscriber::from_source(const std::string& name,
                                                               const Hello& hello,
                                                               Share share,
                                                               const std::string& public_key,
                                                               net::Patience patience) {
  TROUPE_TRY_ASSIGN(socket,
                    net::connect_unix(name, std::chrono::steady_clock::now() + patience.span));
  Lent lent;
  TROUPE_TRY(ask_for_memory(socket, hello, name, patience, lent));
  auto image = opened_.open(lent.answer, lent.memory, public_key, share);
  if (!image && is_taken_back(socket)) return taken_back(hello.at_least);
  if (image) image->parts.front().lease = std::move(socket);
  return image;
}

// Returns the connections to that location that an earlier fetch left open; none if there are none.
StreamSockets RemoteWeightSubscriber::take_kept(const WeightLocation& location) {
  std::lock_guard lock(mutex_);
  const bool same = kept_.host == location.tcp_host && kept_.port == location.tcp_port &&
                    kept_.key == location.key;
  StreamSockets sockets = std::exchange(kept_.sockets, {});
  return same ? std::move(sockets) : StreamSockets();
}

// Another publisher has another key, and nothing of the last one's is passed on under it.
core::Result<void> RemoteWeightSubscriber::open_relay(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (relay_ != nullptr && relay_->key() == key) return {};
  relay_.reset();
  set_aside_.clear();
  TROUPE_TRY_SET(relay_, Relay::create(key, number_, relays_));
  return {};
}

// Asks on the kept connection, or on a new one if there is none or it ended while it was idle.
core::Result<ArrivedImage> RemoteWeightSubscriber::from_stream(core::Version at_least,
                                                               const WeightLocation& location,
                                                               net::Patience patience) {
  TROUPE_TRY_ASSIGN(key, parts_of_key(location.key));
  TROUPE_TRY(open_relay(location.key));
  TROUPE_TRY_ASSIGN(hello, hello_to(location, at_least, Wants::kStream));
  hello.place = relay_->place();
  const auto connect = [&]() -> core::Result<net::OwnedFd> {
    const core::TimePoint until = std::chrono::steady_clock::now() + patience.span;
    return location.tcp_host.starts_with('/')
               ? net::connect_unix(location.tcp_host, until)
               : net::connect_tcp(location.tcp_host, location.tcp_port, until);
  };
  StreamSockets sockets = take_kept(location);
  StreamFetch fetch({shape_, hello, key.public_key, *relay_, relays_, opened_, set_aside_, patience,
                     location.tcp_host + ":" + std::to_string(location.tcp_port), connect});
  auto asked =
      sockets.publisher ? fetch.ask(sockets) : core::fail(ErrorCode::kPeerLost, "no connection");
  if (!asked && asked.error().code != ErrorCode::kPeerLost) return asked.failure();
  if (!asked) {
    TROUPE_TRY_SET(sockets.publisher, connect());
    TROUPE_TRY(fetch.ask(sockets));
  }
  auto image = fetch.receive();
  if (!image || !fetch.publisher_is_there()) return image;
  std::lock_guard lock(mutex_);
  kept_ = {std::move(sockets), location.tcp_host, location.key, location.tcp_port};
  return image;
}

}  // namespace troupe::weights
