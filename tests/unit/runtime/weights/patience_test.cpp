// More receivers than a publisher lends snapshots to wait for their turn; a slow link may take as
// long as it likes as long as bytes move, and one that stands still is said to.
#include "runtime/core/secret.hpp"
#include "runtime/weights/limits.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <thread>

namespace troupe::weights {
namespace {

using core::ErrorCode;

// All snapshots that a publisher lends at once.
std::vector<std::unique_ptr<WeightIntake>> hold_all(RemoteWeightSubscriber& subscriber,
                                                    const WeightLocation& at) {
  std::vector<std::unique_ptr<WeightIntake>> held;
  for (std::size_t i = 0; i < limits::kWeightReaders_max; ++i) {
    auto intake = subscriber.fetch(1, at, kLong);
    TROUPE_CHECK(intake.has_value(), "a snapshot");
    held.push_back(std::move(intake).value());
  }
  return held;
}

TEST(WeightPatience, ReadersBeyondTheLimitWaitForTheirTurn) {
  constexpr std::size_t kMore = 30;
  Source source(tiny());
  const WeightLocation at = source.publish(1);
  RemoteWeightSubscriber holder(tiny());
  auto held = hold_all(holder, only_memory(at));
  const auto now = [&] { return source.publisher->counters().server; };
  std::vector<std::future<bool>> more;
  for (std::size_t i = 0; i < kMore; ++i) {
    const WeightLocation way = i % 2 == 0 ? only_memory(at) : only_tcp(at);
    const std::string host = i % 2 == 0 ? at.host_id : "host " + std::to_string(i);
    more.push_back(std::async(std::launch::async, [way, host] {
      RemoteWeightSubscriber subscriber(tiny(), kernels::PanelDtype::kF32, host);
      const auto got = receive(subscriber, 1, way);
      return got && holds_version(**got, 1);
    }));
  }
  ASSERT_TRUE(comes_true([&] { return now().queued == kMore; })) << now().queued;
  EXPECT_EQ(now().readers, limits::kWeightReaders_max + kMore);
  EXPECT_EQ(now().served, limits::kWeightReaders_max) << "nobody beyond the limit";
  held.clear();
  for (auto& one : more)
    EXPECT_TRUE(one.get());
  EXPECT_TRUE(comes_true([&] { return now().readers == 0; }));
  EXPECT_EQ(now().refused, 0u);
  EXPECT_EQ(now().served, limits::kWeightReaders_max + kMore);
}

TEST(WeightPatience, AReceiverThatWaitsIsToldSoAndThenServed) {
  Source source(tiny());
  const WeightLocation at = source.publish(1);
  RemoteWeightSubscriber holder(tiny());
  auto held = hold_all(holder, only_memory(at));
  const net::OwnedFd socket = connect_to(at, Wants::kStream);
  const Hello hello = hello_with(at, Wants::kStream);
  ASSERT_TRUE(send_all(socket, &hello, sizeof hello, kPatient, "a hello"));
  Answer answer;
  ASSERT_TRUE(receive_all(socket, &answer, sizeof answer, kPatient, "the sign"));
  EXPECT_EQ(answer.status, AnswerStatus::kQueued);
  held.clear();
  ASSERT_TRUE(receive_all(socket, &answer, sizeof answer, kPatient, "the answer"));
  EXPECT_EQ(answer.status, AnswerStatus::kHere);
  EXPECT_EQ(answer.version, 1u);
}

// A source on TCP that a script plays once somebody has said hello.
struct ScriptedSource {
  explicit ScriptedSource(std::function<void(const net::OwnedFd&)> script) {
    at.tcp_host = "127.0.0.1";
    at.key = tests_location_key();
    auto listening = net::listen_tcp(at.tcp_host, at.tcp_port);
    TROUPE_CHECK(listening.has_value(), "listening");
    thread = std::jthread([script = std::move(script), listener = std::move(*listening)] {
      net::OwnedFd socket;
      TROUPE_CHECK(comes_true([&] { return bool(socket = net::accept_one(listener)); }),
                   "accepting");
      Hello hello;
      TROUPE_CHECK(receive_all(socket, &hello, sizeof hello, kPatient, "hello").has_value(),
                   "a hello");
      script(socket);
    });
  }
  WeightLocation at;
  std::jthread thread;
};

// The bytes of an answer and of a snapshot of `tiny()`, version 4.
std::string stream_bytes() {
  return stream_of(*snapshot_of(tiny(), 4));
}

// The system paces the link: the whole takes three times as long as the patience with it.
TEST(WeightPatience, ASlowLinkMayTakeLongerThanThePatience) {
  const std::string bytes = stream_bytes();
  ScriptedSource slow([&bytes](const net::OwnedFd& socket) {
    const auto rate = static_cast<unsigned>(bytes.size() / 3);  // bytes a second
    ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate), 0);
    ASSERT_TRUE(send_all(socket, bytes.data(), bytes.size(), kPatient, "bytes"));
    char done = 0;
    EXPECT_TRUE(receive_all(socket, &done, 1, kPatient, "the end"));
  });
  RemoteWeightSubscriber subscriber(tiny());
  const auto begin = std::chrono::steady_clock::now();
  const auto intake = subscriber.fetch(4, slow.at, std::chrono::seconds(1));
  ASSERT_TRUE(intake) << intake.error().message;
  EXPECT_EQ((*intake)->version(), 4u);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << "not slow at all";
}

TEST(WeightPatience, ALinkThatStandsStillIsNamedAsThat) {
  const std::string bytes = stream_bytes();
  std::promise<void> heard;
  ScriptedSource still([&, said = heard.get_future().share()](const net::OwnedFd& socket) {
    ASSERT_TRUE(send_all(socket, bytes.data(), bytes.size() / 2, kPatient, "a half"));
    said.wait();
  });
  RemoteWeightSubscriber subscriber(tiny());
  const auto got = subscriber.fetch(4, still.at, std::chrono::milliseconds(200));
  heard.set_value();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kDeadline);
  EXPECT_NE(got.error().message.find("nothing moved for 0.2 s after"), std::string::npos)
      << got.error().message;
}

TEST(WeightPatience, ASubscriberThatIsClosedWaitsNoLonger) {
  std::promise<void> asked, heard;
  ScriptedSource silent([&, said = heard.get_future().share()](const net::OwnedFd&) {
    asked.set_value();
    said.wait();
  });
  RemoteWeightSubscriber subscriber(tiny());
  auto fetch = std::async(std::launch::async,
                          [&] { return subscriber.fetch(4, silent.at, kLong).error().code; });
  asked.get_future().wait();
  subscriber.close();
  EXPECT_EQ(fetch.get(), ErrorCode::kClosed);
  heard.set_value();
  EXPECT_EQ(subscriber.fetch(4, silent.at, kLong).error().code, ErrorCode::kClosed) << "for good";
}

}  // namespace
}  // namespace troupe::weights
