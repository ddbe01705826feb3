// What a publisher does with strangers, and what a receiver does with sources that lie: every fault
// is named, nothing of it reaches the panels, and the next receiver is served.
#include "runtime/core/crc32c.hpp"
#include "runtime/core/secret.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace troupe::weights {
namespace {

using core::ErrorCode;

// The answer to these bytes; status 0 when the publisher only hangs up.
AnswerStatus answer_to(const WeightLocation& at, Wants way, const void* bytes, std::size_t size) {
  const net::OwnedFd socket = connect_to(at, way);
  TROUPE_CHECK(send_all(socket, bytes, size, kPatient, "hello").has_value(), "sending");
  Answer answer;
  const auto got = receive_all(socket, &answer, sizeof answer, kPatient, "answer");
  return got ? answer.status : AnswerStatus{};
}

TEST(WeightServer, StrangersAreToldAndForgotten) {
  Source source(tiny());
  const WeightLocation at = source.publish(1);
  for (const Wants way : {Wants::kMemory, Wants::kStream}) {
    Hello hello = hello_with(at, way);
    EXPECT_EQ(answer_to(at, way, &hello, sizeof hello), AnswerStatus::kHere);
    hello.secret[63] = static_cast<char>(hello.secret[63] ^ 1);
    EXPECT_EQ(answer_to(at, way, &hello, sizeof hello), AnswerStatus::kWrongKey);
    hello = hello_with(at, way == Wants::kMemory ? Wants::kStream : Wants::kMemory);
    EXPECT_EQ(answer_to(at, way, &hello, sizeof hello), AnswerStatus::kMalformed);
    EXPECT_EQ(answer_to(at, way, "GET / HTTP/1.1\r\n", 16), AnswerStatus{});
    hello = hello_with(at, way);
    hello.at_least = 2;
    EXPECT_EQ(answer_to(at, way, &hello, sizeof hello), AnswerStatus::kOlder);
  }
  EXPECT_EQ(source.publisher->counters().server.refused, 6u);
  RemoteWeightSubscriber subscriber(tiny());
  EXPECT_TRUE(receive(subscriber, 1, only_memory(at)));
  EXPECT_TRUE(receive(subscriber, 1, only_tcp(at)));
  WeightLocation wrong = at;
  wrong.key[0] = wrong.key[0] == 'a' ? 'b' : 'a';
  const auto refused = subscriber.fetch(1, wrong, kLong);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("refused the key"), std::string::npos);
  wrong.key.resize(10);
  EXPECT_EQ(subscriber.fetch(1, wrong, kLong).error().code, ErrorCode::kInvalidArgument);
}

TEST(WeightServer, SilentAndSlowOnesHoldUpNobody) {
  Source source(wide());
  const WeightLocation at = source.publish(1);
  const net::OwnedFd silent = connect_to(at, Wants::kStream), half = connect_to(at, Wants::kMemory);
  const net::OwnedFd reads_nothing = connect_to(at, Wants::kStream);
  const Hello hello = hello_with(at, Wants::kStream);
  ASSERT_TRUE(send_all(half, &hello, 20, kPatient, "half a hello"));
  ASSERT_TRUE(send_all(reads_nothing, &hello, sizeof hello, kPatient, "a hello"));
  RemoteWeightSubscriber subscriber(wide());
  for (core::Version version = 2; version < 10; ++version) {
    source.publish(version);
    for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
      const auto got = receive(subscriber, version, way);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(holds_version(**got, version));
    }
  }
  EXPECT_LE(source.publisher->counters().snapshots, 3u);
}

// The bytes of a right answer and snapshot of `tiny()`, version 4.
std::string right_bytes() {
  return stream_of(*snapshot_of(tiny(), 4, kBucket_bytes_min));
}

// Changes fields of the head and makes its checksum right again.
void edit_head(std::string& bytes, const std::function<void(SnapshotHead&)>& edit) {
  SnapshotHead head;
  std::memcpy(&head, bytes.data() + sizeof(Answer), sizeof head);
  edit(head);
  head.head_crc = core::crc32c(&head, offsetof(SnapshotHead, head_crc));
  std::memcpy(bytes.data() + sizeof(Answer), &head, sizeof head);
}

// What a receiver says of a source that sends these bytes over TCP.
core::Result<std::shared_ptr<const model::PackedWeights>> from_stream(const std::string& bytes) {
  WeightLocation at;
  at.tcp_host = "127.0.0.1";
  at.key = tests_location_key();
  auto listener = net::listen_tcp(at.tcp_host, at.tcp_port);
  TROUPE_CHECK(listener.has_value(), "listening");
  const std::jthread source([&] {
    net::OwnedFd socket;
    TROUPE_CHECK(comes_true([&] { return bool(socket = net::accept_one(*listener)); }),
                 "accepting");
    Hello hello;
    (void)receive_all(socket, &hello, sizeof hello, kPatient, "hello");
    (void)send_all(socket, bytes.data(), bytes.size(), kPatient, "bytes");
    char done = 0;  // closing at once could throw away what the receiver has not read
    if (bytes.size() == right_bytes().size()) (void)receive_all(socket, &done, 1, kPatient, "end");
  });
  RemoteWeightSubscriber subscriber(tiny());
  return receive(subscriber, 4, at);
}

void expect_fault(const std::string& bytes, ErrorCode code, const std::string& said) {
  const auto got = from_stream(bytes);
  ASSERT_FALSE(got) << said;
  EXPECT_EQ(got.error().code, code) << got.error().message;
  EXPECT_NE(got.error().message.find(said), std::string::npos) << got.error().message;
}

TEST(RemoteWeightSubscriber, NamesWhatIsWrongWithAStream) {
  const std::string right = right_bytes();
  const auto good = from_stream(right);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_TRUE(holds_version(**good, 4));

  std::string bytes = right;
  bytes[bytes.size() - 1000] = static_cast<char>(bytes[bytes.size() - 1000] ^ 4);
  expect_fault(bytes, ErrorCode::kData, "has a wrong checksum");
  bytes = right;
  bytes[sizeof(Answer) + 4096 + 70'000] ^= 1;
  expect_fault(bytes, ErrorCode::kData, "bucket 1 of");
  bytes = right;
  bytes[sizeof(Answer) + sizeof(SnapshotHead) + 2] ^= 1;
  expect_fault(bytes, ErrorCode::kData, "checksum of the buckets");
  bytes = right;
  bytes[sizeof(Answer) + 20] ^= 1;
  expect_fault(bytes, ErrorCode::kData, "its checksum");
  bytes = right;
  bytes[sizeof(Answer) + offsetof(SnapshotHead, signature) + 3] ^= 1;
  expect_fault(bytes, ErrorCode::kData, "did not sign version 4");
  expect_fault(right.substr(0, right.size() / 2), ErrorCode::kPeerLost, "the other side closed");
  expect_fault(right.substr(0, sizeof(Answer) + 10), ErrorCode::kPeerLost, "its head");
  expect_fault("", ErrorCode::kPeerLost, "the answer of");
  expect_fault(std::string(right.size(), 'x'), ErrorCode::kData, "does not speak");
}

TEST(RemoteWeightSubscriber, TakesNoSizesFromAStream) {
  const std::string right = right_bytes();
  const auto with = [&](const std::function<void(SnapshotHead&)>& edit) {
    std::string bytes = right;
    edit_head(bytes, edit);
    return bytes;
  };
  expect_fault(with([](auto& head) { head.image_bytes = ~0ull / 8; }), ErrorCode::kData,
               "size of the image");
  expect_fault(with([](auto& head) { head.bucket_bytes = 1ull << 40; }), ErrorCode::kData,
               "is refused");
  expect_fault(with([](auto& head) { head.bucket_bytes = 0; }), ErrorCode::kData, "is refused");
  expect_fault(with([](auto& head) { head.buckets = 0xffffffff; }), ErrorCode::kData,
               "number of buckets");
  expect_fault(with([](auto& head) { head.layout_hash ^= 1; }), ErrorCode::kData,
               "load the same model");
  expect_fault(with([](auto& head) { head.version = 5; }), ErrorCode::kData,
               "not what was announced");
  expect_fault(with([](auto& head) { head.magic ^= 1; }), ErrorCode::kData,
               "begins with other bytes");
  std::string bytes = right;
  Answer answer;
  answer.version = 3;
  std::memcpy(bytes.data(), &answer, sizeof answer);
  expect_fault(bytes, ErrorCode::kData, "gives version 3 instead of 4");
  answer.status = static_cast<AnswerStatus>(99);
  std::memcpy(bytes.data(), &answer, sizeof answer);
  expect_fault(bytes, ErrorCode::kData, "unknown status 99");
}

// A source on the Unix socket that passes memory with these bytes after its answer.
core::Result<std::shared_ptr<const model::PackedWeights>> from_memory(const std::string& bytes,
                                                                      int seals,
                                                                      bool pass = true) {
  WeightLocation at;
  at.host_id = own_host_id();
  at.socket = "@troupe-test-" + std::to_string(random_id());
  at.key = tests_location_key();
  auto listener = net::listen_unix(at.socket);
  TROUPE_CHECK(listener.has_value(), "listening");
  const std::string snapshot = bytes.substr(sizeof(Answer));
  net::OwnedFd memory(::memfd_create("troupe-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  TROUPE_CHECK(::write(memory.get(), snapshot.data(), snapshot.size()) ==
                   static_cast<ssize_t>(snapshot.size()),
               "writing memory");
  if (seals != 0) ::fcntl(memory.get(), F_ADD_SEALS, seals);
  const std::jthread source([&] {
    net::OwnedFd socket;
    TROUPE_CHECK(comes_true([&] { return bool(socket = net::accept_one(*listener)); }),
                 "accepting");
    Hello hello;
    (void)receive_all(socket, &hello, sizeof hello, kPatient, "hello");
    if (pass) {
      net::send_with_fd(socket, bytes.data(), sizeof(Answer), memory.get());
    } else {
      (void)send_all(socket, bytes.data(), sizeof(Answer), kPatient, "answer");
    }
    char done = 0;
    (void)receive_all(socket, &done, 1, kPatient, "the end of the lease");
  });
  RemoteWeightSubscriber subscriber(tiny());
  return receive(subscriber, 4, at);
}

TEST(RemoteWeightSubscriber, NamesWhatIsWrongWithSharedMemory) {
  const std::string right = right_bytes();
  const auto good = from_memory(right, F_SEAL_SHRINK);
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_TRUE(holds_version(**good, 4));
  EXPECT_EQ(from_memory(right, 0).error().code, ErrorCode::kData) << "it could shrink under us";
  EXPECT_EQ(from_memory(right, F_SEAL_SHRINK, false).error().code, ErrorCode::kData);
  EXPECT_EQ(from_memory(right.substr(0, right.size() - 4096), F_SEAL_SHRINK).error().code,
            ErrorCode::kData);
  std::string bytes = right;
  bytes[bytes.size() - 5] ^= 1;
  const auto torn = from_memory(bytes, F_SEAL_SHRINK);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, ErrorCode::kData);
  EXPECT_NE(torn.error().message.find("wrong checksum"), std::string::npos);
}

TEST(PushProtocol, TheLayoutsNumberTellsModelsApart) {
  model::ModelSpec other = tiny();
  other.ffn += 16;
  other.hidden = tiny().hidden;
  const auto number = [](const model::ModelSpec& spec, kernels::PanelDtype dtype) {
    return SnapshotShape(spec, dtype).layout_hash;
  };
  using kernels::PanelDtype;
  EXPECT_NE(number(tiny(), PanelDtype::kF32), number(other, PanelDtype::kF32));
  EXPECT_EQ(number(tiny(), PanelDtype::kF32), number(tiny(), PanelDtype::kF32));
  EXPECT_NE(number(tiny(), PanelDtype::kF32), number(tiny(), PanelDtype::kBf16));
  EXPECT_EQ(number(tiny(), PanelDtype::kBf16), number(tiny(), PanelDtype::kBf16Compute));
}

}  // namespace
}  // namespace troupe::weights
