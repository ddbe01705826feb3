// The receiver's side of push_protocol.hpp: sends the hello, reads the answer, and gets the
// snapshot from device memory, from shared memory or by TCP. Checks what it receives before use.
#include "runtime/weights/remote_subscriber.hpp"

#include "runtime/weights/stream_fetch.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::weights {
namespace {

using core::ErrorCode;
using core::fail;

// A publisher without a free place repeats kQueued until it has one; each repeat restarts the
// patience.
bool is_queued(const Answer& answer) {
  return answer.magic == kPushMagic && answer.status == AnswerStatus::kQueued;
}

core::Result<Answer> receive_answer(const net::OwnedFd& socket,
                                    const std::string& source,
                                    net::Patience patience) {
  Answer answer;
  do {
    TROUPE_TRY(receive_all(socket, &answer, sizeof answer, patience, "the answer of " + source));
  } while (is_queued(answer));
  return answer;
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
    return fail(ErrorCode::kPeerLost,
                "the weights can be had by shared memory of another host alone; let the policy's "
                "node serve them by TCP");
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
  TROUPE_TRY_ASSIGN(answer, receive_answer(*socket, location.socket, patience));
  if (answer.magic == kPushMagic && answer.status == AnswerStatus::kNoDevice) {
    return std::optional<ArrivedImage>();
  }
  TROUPE_TRY(check_answer(answer, at_least, location.socket));
  DevicePlace place;
  TROUPE_TRY(
      receive_all(*socket, &place, sizeof place, patience, "the answer of " + location.socket));
  place.device[sizeof place.device - 1] = 0;
  if (memory_.shared_name() != place.device) return std::optional<ArrivedImage>();
  TROUPE_TRY_ASSIGN(image, open_device(answer, place, location.socket, *socket));
  // Without data the system refuses; fall back on host memory.
  if (image.data == nullptr) return std::optional<ArrivedImage>();
  return std::optional<ArrivedImage>(std::move(image));
}

// Opens the memory only while the lease lasts: afterwards the publisher may free it.
core::Result<ArrivedImage> RemoteWeightSubscriber::open_device(const Answer& answer,
                                                               DevicePlace place,
                                                               const std::string& source,
                                                               net::OwnedFd& lease) {
  if (answer.bytes != shape_.image_bytes || place.layout_hash != shape_.layout_hash) {
    return fail(ErrorCode::kData, source +
                                      ": names, shapes or storage of the tensors differ from this "
                                      "model's; trainer and engine must load the same model");
  }
  core::Memory::SharedHandle handle;
  std::copy(std::begin(place.handle), std::end(place.handle), handle.begin());
  ArrivedImage image;
  void* const data = memory_.open_shared(handle);
  if (data == nullptr) return image;
  image.version = answer.version;
  image.shape = shape_;
  image.data = static_cast<const char*>(data);
  image.on_device = true;
  image.owner = std::shared_ptr<const void>(
      data, [&memory = memory_](void* start) { memory.close_shared(start); });
  image.lease = std::move(lease);
  image.verified = true;  // nothing travelled
  return image;
}

core::Result<ArrivedImage> RemoteWeightSubscriber::from_memory(net::OwnedFd socket,
                                                               core::Version at_least,
                                                               const WeightLocation& location,
                                                               net::Patience patience) {
  TROUPE_TRY_ASSIGN(key, parts_of_key(location.key));
  TROUPE_TRY_ASSIGN(hello, hello_to(location, at_least, Wants::kMemory));
  TROUPE_TRY(send_all(socket, &hello, sizeof hello, patience, "asking for weights"));
  Answer answer;
  net::OwnedFd memory;
  do {
    TROUPE_TRY(receive_with_fd(socket, &answer, sizeof answer, memory, patience,
                               "the answer of " + location.socket));
  } while (is_queued(answer));
  TROUPE_TRY(check_answer(answer, at_least, location.socket));
  if (!memory) {
    return fail(ErrorCode::kData, location.socket + " answered without its shared memory");
  }
  auto image = opened_.open(answer, memory, key.public_key);
  if (!image && is_taken_back(socket)) return taken_back(answer.version);
  if (image) image->lease = std::move(socket);
  return image;
}

// Returns the connection to that location that an earlier fetch left open; empty if there is none.
net::OwnedFd RemoteWeightSubscriber::take_kept(const WeightLocation& location) {
  std::lock_guard lock(mutex_);
  const bool same = kept_.host == location.tcp_host && kept_.port == location.tcp_port &&
                    kept_.key == location.key;
  net::OwnedFd socket = std::move(kept_.socket);
  if (!same) socket.close();
  return socket;
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
  StreamFetch fetch({shape_, hello, key.public_key, *relay_, relays_, opened_, set_aside_, patience,
                     location.tcp_host + ":" + std::to_string(location.tcp_port)});
  net::OwnedFd socket = take_kept(location);
  auto asked = socket ? fetch.ask(socket) : core::fail(ErrorCode::kPeerLost, "no connection");
  if (!asked && asked.error().code != ErrorCode::kPeerLost) return asked.failure();
  if (!asked) {
    const core::TimePoint until = std::chrono::steady_clock::now() + patience.span;
    TROUPE_TRY_SET(socket, location.tcp_host.starts_with('/')
                               ? net::connect_unix(location.tcp_host, until)
                               : net::connect_tcp(location.tcp_host, location.tcp_port, until));
    TROUPE_TRY(fetch.ask(socket));
  }
  auto image = fetch.receive(socket);
  if (!image || !fetch.publisher_is_there()) return image;
  std::lock_guard lock(mutex_);
  kept_ = {std::move(socket), location.tcp_host, location.key, location.tcp_port};
  return image;
}

}  // namespace troupe::weights
