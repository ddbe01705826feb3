// A receiver by TCP keeps its connection from version to version and makes it anew when it breaks;
// many receivers at one publisher, each a process.
#include "runtime/core/secret.hpp"
#include "tests/unit/runtime/weights/reader_process.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <thread>

namespace troupe::weights {
namespace {

using core::ErrorCode;

TEST(KeptConnection, BringsAllVersions) {
  Source source(tiny());
  RemoteWeightSubscriber subscriber(tiny());
  for (core::Version version = 1; version <= 5; ++version) {
    const auto got = receive(subscriber, version, only_tcp(source.publish(version)));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, version));
  }
  const auto now = [&] { return source.publisher->counters().server; };
  EXPECT_TRUE(comes_true([&] {
    const auto is = now();
    return is.served == 5 && is.idle == 1 && is.readers == 0;
  }));
  EXPECT_EQ(now().accepted, 1u);
  EXPECT_EQ(now().cut, 0u);
}

TEST(KeptConnection, EndsWithItsReceiver) {
  Source source(tiny());
  {
    RemoteWeightSubscriber subscriber(tiny());
    ASSERT_TRUE(receive(subscriber, 1, only_tcp(source.publish(1))));
    ASSERT_TRUE(comes_true([&] { return source.publisher->counters().server.idle == 1; }));
  }
  EXPECT_TRUE(comes_true([&] { return source.publisher->counters().server.idle == 0; }));
  EXPECT_EQ(source.publisher->counters().server.cut, 0u) << "it was done";
}

TEST(KeptConnection, AskingForMoreThanThereIsEndsItAndTheNextIsNew) {
  Source source(tiny());
  const WeightLocation at = only_tcp(source.publish(1));
  RemoteWeightSubscriber subscriber(tiny());
  ASSERT_TRUE(receive(subscriber, 1, at));
  EXPECT_EQ(subscriber.fetch(2, at, kLong).error().code, ErrorCode::kNotFound);
  source.publish(2);
  ASSERT_TRUE(receive(subscriber, 2, at));
  EXPECT_EQ(source.publisher->counters().server.accepted, 2u);
}

TEST(KeptConnection, AnotherPublisherIsAnotherConnection) {
  Source one(tiny()), two(tiny());
  RemoteWeightSubscriber subscriber(tiny());
  ASSERT_TRUE(receive(subscriber, 1, only_tcp(one.publish(1))));
  const auto got = receive(subscriber, 7, only_tcp(two.publish(7)));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 7));
  EXPECT_TRUE(comes_true([&] { return one.publisher->counters().server.idle == 0; }));
}

// A source on TCP whose connections play one script each, in the order of their arrival.
struct ScriptedSources {
  using Script = std::function<void(const net::OwnedFd&)>;
  explicit ScriptedSources(std::vector<Script> scripts) {
    at.tcp_host = "127.0.0.1";
    at.key = tests_location_key();
    auto listening = net::listen_tcp(at.tcp_host, at.tcp_port);
    TROUPE_CHECK(listening.has_value(), "listening");
    thread = std::jthread([scripts = std::move(scripts), listener = std::move(*listening)] {
      for (const Script& script : scripts) {
        net::OwnedFd socket;
        TROUPE_CHECK(comes_true([&] { return bool(socket = net::accept_one(listener)); }),
                     "accepting");
        script(socket);
      }
    });
  }
  WeightLocation at;
  std::jthread thread;
};

bool hears_hello(const net::OwnedFd& socket) {
  Hello hello;
  return receive_all(socket, &hello, sizeof hello, kPatient, "hello").has_value();
}

// Answers a hello with version 4 of `tiny()`, or with half of it.
void serve_four(const net::OwnedFd& socket, bool whole) {
  const std::string stream = stream_of(*snapshot_of(tiny(), 4));
  TROUPE_CHECK(hears_hello(socket), "a hello");
  const std::size_t bytes = whole ? stream.size() : stream.size() / 2;
  EXPECT_TRUE(send_all(socket, stream.data(), bytes, kPatient, "bytes"));
  char done = 0;
  if (whole) {
    EXPECT_TRUE(receive_all(socket, &done, 1, kPatient, "the end"));
  }
}

TEST(KeptConnection, OneThatEndedWhileIdleIsMadeAnewAtOnce) {
  ScriptedSources source({[](const net::OwnedFd& socket) { serve_four(socket, true); },
                          [](const net::OwnedFd& socket) { serve_four(socket, true); }});
  RemoteWeightSubscriber subscriber(tiny());
  for (int i = 0; i < 2; ++i) {
    const auto got = receive(subscriber, 4, source.at);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, 4));
  }
}

TEST(KeptConnection, AStreamThatBreaksIsAnErrorAndTheNextTryConnectsAnew) {
  ScriptedSources source({[](const net::OwnedFd& socket) {
                            serve_four(socket, true);
                            serve_four(socket, false);
                          },
                          [](const net::OwnedFd& socket) { serve_four(socket, true); }});
  RemoteWeightSubscriber subscriber(tiny());
  ASSERT_TRUE(receive(subscriber, 4, source.at));
  const auto broken = receive(subscriber, 4, source.at);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kPeerLost) << broken.error().message;
  const auto got = receive(subscriber, 4, source.at);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 4));
}

TEST(KeptConnection, ASecondHelloIsCheckedLikeTheFirst) {
  Source source(tiny());
  const WeightLocation at = source.publish(1);
  const SnapshotShape shape(tiny(), kernels::PanelDtype::kF32);
  const net::OwnedFd socket = connect_to(at, Wants::kStream);
  Hello hello = hello_with(at, Wants::kStream);
  std::vector<char> bytes(sizeof(Answer) + shape.bytes());
  ASSERT_TRUE(send_all(socket, &hello, sizeof hello, kPatient, "hello"));
  ASSERT_TRUE(receive_all(socket, bytes.data(), bytes.size(), kPatient, "a stream"));
  ASSERT_TRUE(send_all(socket, bytes.data(), 1, kPatient, "the end"));
  hello.secret[0] = static_cast<char>(hello.secret[0] ^ 1);
  ASSERT_TRUE(send_all(socket, &hello, sizeof hello, kPatient, "hello"));
  Answer answer;
  ASSERT_TRUE(receive_all(socket, &answer, sizeof answer, kPatient, "an answer"));
  EXPECT_EQ(answer.status, AnswerStatus::kWrongKey);
  EXPECT_FALSE(receive_all(socket, &answer, 1, kPatient, "the end")) << "the publisher hung up";
}

// More receivers than a publisher lends snapshots to, each a process with a connection of its own,
// on hosts that cannot reach each other.
TEST(KeptConnection, EightyOneProcessesFollowOnePublisher) {
  constexpr std::size_t kProcesses = 81;
  Source source(tiny());
  const WeightLocation at = source.publish(1);
  std::deque<ReaderProcess> readers;
  for (std::size_t i = 0; i < kProcesses; ++i)
    readers.emplace_back("tcp", tiny().vocab, at, "host " + std::to_string(i));
  for (core::Version version = 1; version <= 3; ++version) {
    if (version > 1) source.publish(version);
    const std::string name = std::to_string(version);
    for (ReaderProcess& reader : readers)
      reader.say("fetch " + name);
    for (ReaderProcess& reader : readers)
      ASSERT_EQ(reader.hear(), "fetched " + name);
    for (ReaderProcess& reader : readers)
      ASSERT_EQ(reader.ask("pack"), "ok " + name);
  }
  const auto now = [&] { return source.publisher->counters().server; };
  EXPECT_TRUE(comes_true([&] { return now().served == 3 * kProcesses; })) << now().served;
  EXPECT_EQ(now().accepted, kProcesses) << "one connection each";
  EXPECT_EQ(now().refused, 0u);
  EXPECT_EQ(now().taken_back, 0u);
  EXPECT_LE(source.publisher->counters().snapshots_most, 3u);
}

}  // namespace
}  // namespace troupe::weights
