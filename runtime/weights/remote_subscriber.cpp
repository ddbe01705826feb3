// The receiver's side of push_protocol.hpp: sends the hello, reads the answer, and gets the
// snapshot from device memory, from shared memory or by TCP. Checks what it receives before use.
#include "runtime/weights/remote_subscriber.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/shared_memory.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace troupe::weights {
namespace {

using core::ErrorCode;
using core::fail;

// Size of the pieces that are received and checked, small enough to stay in the cache.
constexpr std::size_t kPiece_bytes = 256 << 10;

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

// Maps a publisher's shared memory into this process, read-only. Errors: kData (wrong size, or a
// size that is not sealed), kResources.
core::Result<OpenSnapshots::Opened> map_memory(const net::OwnedFd& memory,
                                               std::uint64_t id,
                                               std::uint64_t bytes) {
  TROUPE_TRY_ASSIGN(opened, core::SharedMemory::open("the weights", memory, bytes,
                                                     core::SharedMemory::Others::kRead));
  auto kept = std::make_shared<core::SharedMemory>(std::move(opened));
  return OpenSnapshots::Opened{id, bytes, std::shared_ptr<const void>(kept, kept->data())};
}

// Describes the weights of a snapshot from its head and from the buckets' checksums, which follow
// the head. Error kData: the checksums are damaged.
core::Result<FlatWeights> announced(const SnapshotHead& head,
                                    const SnapshotShape& shape,
                                    const char* checksums) {
  FlatWeights flat;
  flat.version = head.version;
  flat.shape = shape;
  flat.table.resize(shape.buckets);
  std::memcpy(flat.table.data(), checksums, 4 * flat.table.size());
  TROUPE_TRY(check_table(head, flat.table));
  return flat;
}

std::string name_of_stream(core::Version version) {
  return "the stream of version " + std::to_string(version) + " of the weights";
}

// Receives one bucket from the socket and checks it on the way.
core::Result<void> receive_bucket(const net::OwnedFd& socket,
                                  const FlatWeights& flat,
                                  std::uint32_t index,
                                  char* into,
                                  net::Patience patience) {
  const std::size_t size = flat.shape.bucket(flat.data, index).size();
  std::uint32_t crc = 0;
  for (std::size_t done = 0; done < size;) {
    const std::size_t piece = std::min(size - done, kPiece_bytes);
    TROUPE_TRY(receive_all(socket, into + done, piece, patience,
                           name_of_stream(flat.version) + ", bucket " + std::to_string(index)));
    crc = core::crc32c(into + done, piece, crc);
    done += piece;
  }
  if (crc != flat.table[index]) return wrong_bucket(flat.version, index, flat.shape.buckets);
  return {};
}

}  // namespace

RemoteWeightSubscriber::RemoteWeightSubscriber(const model::ModelSpec& spec,
                                               kernels::PanelDtype dtype,
                                               std::string host_id,
                                               core::Memory& memory)
    : shape_(model::ParamLayout(spec)),
      host_id_(std::move(host_id)),
      number_(static_cast<std::uint32_t>(random_id() | 1)),
      memory_(memory),
      shadows_(std::make_shared<ShadowPool>(spec, dtype, memory)) {}

core::Result<void> RemoteWeightSubscriber::say_hello(const net::OwnedFd& socket,
                                                     core::Version at_least,
                                                     Wants wants,
                                                     const WeightLocation& location,
                                                     net::Patience patience) const {
  if (location.key.size() != kKey_chars) {
    return fail(ErrorCode::kInvalidArgument,
                "the key of a weight source has " + std::to_string(location.key.size()) +
                    " characters instead of " + std::to_string(kKey_chars));
  }
  Hello hello;
  hello.at_least = at_least;
  hello.wants = wants;
  hello.receiver = number_;
  std::memcpy(hello.key, location.key.data(), kKey_chars);
  return send_all(socket, &hello, sizeof hello, patience, "asking for weights");
}

core::Result<std::unique_ptr<WeightIntake>> RemoteWeightSubscriber::fetch(
    core::Version at_least, const WeightLocation& location, core::Duration span) {
  if (closed_) return fail(ErrorCode::kClosed, "this process no longer fetches weights");
  const net::Patience patience{span, &closed_};
  const auto wrap =
      [&](core::Result<FlatWeights> flat) -> core::Result<std::unique_ptr<WeightIntake>> {
    if (!flat) return flat.failure();
    return std::unique_ptr<WeightIntake>(std::make_unique<FlatIntake>(std::move(*flat), shadows_));
  };
  const bool same_host = !location.socket.empty() && location.host_id == host_id_;
  if (same_host && !memory_.shared_name().empty()) {
    auto flat = from_device(at_least, location, patience);
    if (!flat) return flat.failure();
    if (*flat) return wrap(std::move(**flat));
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

core::Result<std::optional<FlatWeights>> RemoteWeightSubscriber::from_device(
    core::Version at_least, const WeightLocation& location, net::Patience patience) {
  auto socket =
      net::connect_unix(location.socket, std::chrono::steady_clock::now() + patience.span);
  if (!socket) return std::optional<FlatWeights>();  // the other ways report what is wrong
  TROUPE_TRY(say_hello(*socket, at_least, Wants::kDevice, location, patience));
  const std::string source = "the answer of " + location.socket;
  TROUPE_TRY_ASSIGN(answer, receive_answer(*socket, location.socket, patience));
  if (answer.magic == kPushMagic && answer.status == AnswerStatus::kNoDevice)
    return std::optional<FlatWeights>();
  TROUPE_TRY(check_answer(answer, at_least, location.socket));
  DevicePlace place;
  TROUPE_TRY(receive_all(*socket, &place, sizeof place, patience, source));
  place.device[sizeof place.device - 1] = 0;
  if (memory_.shared_name() != place.device) return std::optional<FlatWeights>();
  if (answer.bytes != shape_.data_bytes() || place.layout_hash != shape_.layout_hash) {
    return fail(ErrorCode::kData,
                location.socket +
                    ": names or shapes of the tensors differ from this model's; trainer and engine "
                    "must load the same model");
  }
  core::Memory::SharedHandle handle;
  std::copy(std::begin(place.handle), std::end(place.handle), handle.begin());
  // Open only while the lease lasts: afterwards the publisher may free the memory.
  void* const data = memory_.open_shared(handle);
  if (data == nullptr)
    return std::optional<FlatWeights>();  // the system refuses; fall back on host memory
  FlatWeights flat;
  flat.version = answer.version;
  flat.shape = shape_;
  flat.data = static_cast<const float*>(data);
  flat.on_device = true;
  flat.owner = std::shared_ptr<const void>(
      data, [&memory = memory_](void* start) { memory.close_shared(start); });
  flat.lease = std::move(*socket);
  flat.verified = true;  // nothing travelled
  return std::optional<FlatWeights>(std::move(flat));
}

core::Result<FlatWeights> RemoteWeightSubscriber::from_memory(net::OwnedFd socket,
                                                              core::Version at_least,
                                                              const WeightLocation& location,
                                                              net::Patience patience) {
  TROUPE_TRY(say_hello(socket, at_least, Wants::kMemory, location, patience));
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
  auto flat = map_snapshot(answer, memory);
  if (!flat && is_taken_back(socket)) return taken_back(answer.version);
  if (flat) flat->lease = std::move(socket);
  return flat;
}

// Maps the announced snapshot and checks its head and the checksum of its table.
core::Result<FlatWeights> RemoteWeightSubscriber::map_snapshot(const Answer& answer,
                                                               const net::OwnedFd& memory) {
  TROUPE_TRY_ASSIGN(mapping, in_memory_.get(answer.buffer_id, [&] {
    return map_memory(memory, answer.buffer_id, answer.bytes);
  }));
  const char* const start = static_cast<const char*>(mapping.data.get());
  SnapshotHead head;
  if (mapping.bytes < sizeof head) {
    return fail(ErrorCode::kData, "the shared memory of the weights is too short for its head");
  }
  std::memcpy(&head, start, sizeof head);
  TROUPE_TRY_ASSIGN(shape, check_head(head, shape_));
  if (mapping.bytes != shape.bytes() || head.version != answer.version) {
    return fail(ErrorCode::kData, "the shared memory of the weights is not what was announced");
  }
  TROUPE_TRY_ASSIGN(flat, announced(head, shape, start + sizeof head));
  flat.data = reinterpret_cast<const float*>(start + shape.data_offset());
  flat.owner = mapping.data;
  return flat;
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

// Asks on the kept connection, or on a new one if there is none or it ended while it was idle.
core::Result<RemoteWeightSubscriber::Asked> RemoteWeightSubscriber::ask_for_stream(
    core::Version at_least, const WeightLocation& location, net::Patience patience) {
  const std::string source = location.tcp_host + ":" + std::to_string(location.tcp_port);
  const auto ask = [&](net::OwnedFd socket) -> core::Result<Asked> {
    TROUPE_TRY(say_hello(socket, at_least, Wants::kStream, location, patience));
    TROUPE_TRY_ASSIGN(answer, receive_answer(socket, source, patience));
    return Asked{std::move(socket), answer};
  };
  if (net::OwnedFd kept = take_kept(location)) {
    auto asked = ask(std::move(kept));
    if (asked || asked.error().code != ErrorCode::kPeerLost) return asked;
  }
  const core::TimePoint until = std::chrono::steady_clock::now() + patience.span;
  TROUPE_TRY_ASSIGN(socket, location.tcp_host.starts_with('/')
                                ? net::connect_unix(location.tcp_host, until)
                                : net::connect_tcp(location.tcp_host, location.tcp_port, until));
  return ask(std::move(socket));
}

core::Result<FlatWeights> RemoteWeightSubscriber::from_stream(core::Version at_least,
                                                              const WeightLocation& location,
                                                              net::Patience patience) {
  const std::string source = location.tcp_host + ":" + std::to_string(location.tcp_port);
  TROUPE_TRY_ASSIGN(asked, ask_for_stream(at_least, location, patience));
  auto flat = receive_stream(asked, at_least, source, patience);
  if (!flat) return flat;
  std::lock_guard lock(mutex_);
  kept_ = {std::move(asked.socket), location.tcp_host, location.key, location.tcp_port};
  return flat;
}

core::Result<FlatWeights> RemoteWeightSubscriber::receive_stream(const Asked& asked,
                                                                 core::Version at_least,
                                                                 const std::string& source,
                                                                 net::Patience patience) {
  const net::OwnedFd& socket = asked.socket;
  const Answer& answer = asked.answer;
  TROUPE_TRY(check_answer(answer, at_least, source));
  const std::string what = name_of_stream(answer.version);
  SnapshotHead head;
  TROUPE_TRY(receive_all(socket, &head, sizeof head, patience, what + ", its head"));
  TROUPE_TRY_ASSIGN(shape, check_head(head, shape_));
  if (answer.bytes != shape.bytes() || head.version != answer.version) {
    return fail(ErrorCode::kData, what + " is not what was announced");
  }
  std::vector<char> rest(shape.data_offset() - sizeof head);
  TROUPE_TRY(receive_all(socket, rest.data(), rest.size(), patience, what + ", its checksums"));
  TROUPE_TRY_ASSIGN(flat, announced(head, shape, rest.data()));
  const auto buffer = staging();
  char* const into = reinterpret_cast<char*>(buffer->data());
  flat.data = buffer->data();
  for (std::uint32_t i = 0; i < shape.buckets; ++i)
    TROUPE_TRY(receive_bucket(socket, flat, i, into + i * shape.bucket_bytes, patience));
  const char done = 1;
  TROUPE_TRY(send_all(socket, &done, 1, patience, "ending " + what));
  flat.owner = buffer;
  flat.verified = true;
  return flat;
}

// Returns the previous fetch's buffer if its intake no longer uses it, else a fresh one.
std::shared_ptr<RemoteWeightSubscriber::Staging> RemoteWeightSubscriber::staging() {
  std::lock_guard lock(mutex_);
  if (staging_ == nullptr || staging_.use_count() > 1) {
    staging_ = std::make_shared<Staging>(static_cast<std::int64_t>(shape_.elements));
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return staging_;
}

}  // namespace troupe::weights
