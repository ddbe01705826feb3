// Receivers that pass buckets on, each a process with sockets of its own: few copies leave the
// source; a relay that is killed, frozen, or lies costs its receivers nothing but the way back to
// the source; and a version once begun outlives its source.
#include "runtime/core/crc32c.hpp"
#include "tests/unit/runtime/weights/link.hpp"
#include "tests/unit/runtime/weights/reader_process.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <sstream>

namespace troupe::weights {
namespace {

using kernels::PanelDtype;

constexpr const char* kReach = "127.0.0.1:@";

const SnapshotShape& wide_shape() {
  static const SnapshotShape shape(wide(), PanelDtype::kF32);
  return shape;
}

// The bytes of a stream up to the end of so many buckets.
std::uint64_t stream_bytes_of(std::uint64_t buckets) {
  return sizeof(Answer) + wide_shape().data_offset() + buckets * wide_shape().bucket_bytes;
}

TEST(Relays, SixteenProcessesTakeFourCopiesFromTheSource) {
  Source source(wide());
  const WeightLocation at = source.publish(1);
  std::deque<ReaderProcess> readers;
  for (int i = 0; i < 16; ++i)
    readers.emplace_back("tcp", wide().vocab, at, "host " + std::to_string(i), kReach);
  const auto now = [&] { return source.publisher->counters().server; };
  for (core::Version version = 1; version <= 3; ++version) {
    if (version > 1) source.publish(version);
    const std::uint64_t before = now().streamed_bytes;
    for (ReaderProcess& reader : readers)
      reader.say("fetch " + std::to_string(version));
    for (ReaderProcess& reader : readers)
      ASSERT_EQ(reader.hear(), "fetched " + std::to_string(version));
    for (ReaderProcess& reader : readers)
      EXPECT_EQ(reader.ask("pack"), "ok " + std::to_string(version));
    EXPECT_LE(now().streamed_bytes - before, 4 * wide_shape().bytes());
  }
  std::uint64_t passed_on = 0;
  for (ReaderProcess& reader : readers) {
    std::string word;
    std::uint64_t served = 0, bytes = 0;
    std::istringstream(reader.ask("relay")) >> word >> served >> bytes;
    passed_on += bytes;
  }
  EXPECT_GE(passed_on, 3 * 12 * wide_shape().image_bytes) << "the rest came from the receivers";
  EXPECT_TRUE(comes_true([&] { return now().served == 3 * 16; })) << now().served;
  EXPECT_EQ(now().accepted, 16u) << "one connection each";
}

TEST(Relays, ProcessesOfOneHostShareOneCopy) {
  Source source(wide());
  const WeightLocation at = source.publish(1);
  std::deque<ReaderProcess> readers;
  for (int i = 0; i < 8; ++i)
    readers.emplace_back("tcp", wide().vocab, at, "another host");
  for (core::Version version = 1; version <= 4; ++version) {
    if (version > 1) source.publish(version);
    for (ReaderProcess& reader : readers)
      reader.say("fetch " + std::to_string(version));
    for (ReaderProcess& reader : readers)
      ASSERT_EQ(reader.hear(), "fetched " + std::to_string(version));
    for (ReaderProcess& reader : readers)
      EXPECT_EQ(reader.ask("pack"), "ok " + std::to_string(version));
    EXPECT_EQ(source.publisher->counters().server.streamed_bytes, version * wide_shape().bytes());
  }
}

// A relay process A that has the first buckets of version 1, since its link to the source is held,
// and a child B in this process that is to have them from A: the source has given its four copies
// to others, which pass nothing on.
class OneRelay : public testing::Test {
 protected:
  static constexpr std::uint64_t kHeld = 6;  // buckets that A has

  OneRelay() : source_(std::make_unique<Source>(wide())) {}

  void take_four_copies(const WeightLocation& at, core::Version version) {
    for (int i = 0; i < 4; ++i) {
      if (version == 1) {
        others_.push_back(std::make_unique<RemoteWeightSubscriber>(
            wide(), PanelDtype::kF32, "other host " + std::to_string(i)));
      }
      const auto got = receive(*others_[static_cast<std::size_t>(i)], version, only_tcp(at));
      TROUPE_CHECK(got.has_value(), "a copy");
    }
  }
  static WeightLocation through(const Link& link, WeightLocation at) {
    at.socket.clear();
    at.tcp_port = link.port();
    return at;
  }
  // Starts A and waits until it has its buckets. `reach`: where A's children are sent.
  void start_relay(const WeightLocation& at, const std::string& reach) {
    to_a_.lead_to(at.tcp_port);
    to_a_.allow(stream_bytes_of(kHeld));
    a_ = std::make_unique<ReaderProcess>("tcp", wide().vocab, through(to_a_, at), "host A", reach);
    a_->say("fetch 1");
    std::string word;
    std::uint32_t port = 0;
    std::istringstream(a_->hear()) >> word >> port;
    ASSERT_EQ(word, "port");
    from_a_.lead_to(port);
    ASSERT_TRUE(comes_true([&] { return to_a_.passed() == stream_bytes_of(kHeld); }));
  }
  // B's fetch, through links of its own.
  void start_child(const WeightLocation& at) {
    to_b_.lead_to(at.tcp_port);
    const WeightLocation way = through(to_b_, at);
    got_ = std::async(std::launch::async, [this, way] { return receive(b_, 1, way); });
  }
  bool child_has_what_relay_has() {
    return comes_true([&] { return from_a_.passed() >= stream_bytes_of(kHeld); });
  }
  void expect_child_has(core::Version version) {
    const auto panels = got_.get();
    ASSERT_TRUE(panels) << panels.error().message;
    EXPECT_TRUE(holds_version(**panels, version));
  }
  // B had no more from the source than what A did not give it, and some answers.
  void expect_only_the_rest_from_the_source() {
    EXPECT_GT(to_b_.passed(), 0u);
    EXPECT_LE(to_b_.passed(),
              wide_shape().bytes() - kHeld * wide_shape().bucket_bytes + (64u << 10));
  }

  std::unique_ptr<Source> source_;
  std::vector<std::unique_ptr<RemoteWeightSubscriber>> others_;
  Link to_a_, from_a_, to_b_;
  std::unique_ptr<ReaderProcess> a_;
  RemoteWeightSubscriber b_{wide(), PanelDtype::kF32, "host B"};
  std::future<core::Result<std::shared_ptr<const model::PackedWeights>>> got_;
};

TEST_F(OneRelay, BucketsArePassedOnAsTheyCome) {
  const WeightLocation at = source_->publish(1);
  take_four_copies(at, 1);
  start_relay(at, from_a_.address());
  start_child(at);
  ASSERT_TRUE(child_has_what_relay_has()) << "A has not all of it";
  to_a_.allow_all();
  EXPECT_EQ(a_->hear(), "fetched 1");
  expect_child_has(1);
  EXPECT_LE(to_b_.passed(), 64u << 10) << "B had answers of the source, and no bucket";
  EXPECT_EQ(a_->ask("pack"), "ok 1");
}

TEST_F(OneRelay, OneThatIsKilledCostsTheWayBack) {
  const WeightLocation at = source_->publish(1);
  take_four_copies(at, 1);
  start_relay(at, from_a_.address());
  start_child(at);
  ASSERT_TRUE(child_has_what_relay_has());
  a_->kill();
  expect_child_has(1);
  expect_only_the_rest_from_the_source();
}

TEST_F(OneRelay, OneThatIsFrozenCostsTheWayBackAndGoesOnWhenItThaws) {
  const WeightLocation at = source_->publish(1);
  take_four_copies(at, 1);
  start_relay(at, from_a_.address());
  start_child(at);
  ASSERT_TRUE(child_has_what_relay_has());
  a_->stop();
  expect_child_has(1);
  expect_only_the_rest_from_the_source();
  to_a_.allow_all();
  a_->go_on();
  EXPECT_EQ(a_->hear(), "fetched 1");
  EXPECT_EQ(a_->ask("pack"), "ok 1");
}

// A's children get 2 MB a second, without a pause. B leaves it for one that has the whole version.
TEST_F(OneRelay, ASlowOneIsLeftForABetterOne) {
  const WeightLocation at = source_->publish(1);
  take_four_copies(at, 1);
  from_a_.pace(2'000'000);
  start_relay(at, from_a_.address());
  to_a_.allow_all();
  EXPECT_EQ(a_->hear(), "fetched 1");
  start_child(at);
  ASSERT_TRUE(comes_true([&] { return from_a_.passed() > stream_bytes_of(1); }));
  others_.clear();  // the source has copies to give again
  ASSERT_TRUE(comes_true([&] { return source_->publisher->counters().server.idle == 1; }));
  RelayOptions options;
  options.reach = [](std::uint32_t port) { return "127.0.0.1:" + std::to_string(port); };
  RemoteWeightSubscriber better(wide(), PanelDtype::kF32, "host C", core::host_memory(), options);
  ASSERT_TRUE(receive(better, 1, only_tcp(at)));
  expect_child_has(1);
  EXPECT_TRUE(comes_true([&] { return better.relay_counters().served == 1; }));
  EXPECT_LT(better.relay_counters().streamed_bytes, wide_shape().image_bytes) << "only the rest";
  EXPECT_EQ(a_->ask("pack"), "ok 1");
}

TEST_F(OneRelay, OneThatTurnsABitOverIsSetAside) {
  const WeightLocation at = source_->publish(1);
  take_four_copies(at, 1);
  from_a_.spoil(stream_bytes_of(kHeld - 1) + 1000);
  start_relay(at, from_a_.address());
  start_child(at);
  to_a_.allow_all();
  expect_child_has(1);
  EXPECT_EQ(a_->hear(), "fetched 1");
  EXPECT_EQ(a_->ask("pack"), "ok 1");
  ASSERT_EQ(from_a_.connections(), 1u);
  EXPECT_LE(to_b_.passed(),
            wide_shape().bytes() - (kHeld - 1) * wide_shape().bucket_bytes + (64u << 10))
      << "the good buckets were kept";
  source_->publish(2);
  take_four_copies(at, 2);
  EXPECT_EQ(a_->ask("fetch 2"), "fetched 2");
  const auto next = receive(b_, 2, through(to_b_, at));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(holds_version(**next, 2));
  EXPECT_EQ(from_a_.connections(), 1u) << "nobody went there again";
}

// Relays that give something else than the version that the receiver was sent for.
TEST_F(OneRelay, OneThatServesAnOldVersionIsSetAside) {
  const WeightLocation at = source_->publish(1);
  std::string old(sizeof(Answer) + wide_shape().bytes(), '\0');
  {
    const net::OwnedFd socket = connect_to(at, Wants::kStream);
    const Hello hello = hello_with(at, Wants::kStream);
    ASSERT_TRUE(send_all(socket, &hello, sizeof hello, kPatient, "hello"));
    ASSERT_TRUE(receive_all(socket, old.data(), old.size(), kPatient, "version 1"));
  }
  std::string announced = old, renamed = old;
  reinterpret_cast<Answer*>(announced.data())->version = 2;
  auto* const head = reinterpret_cast<SnapshotHead*>(renamed.data() + sizeof(Answer));
  reinterpret_cast<Answer*>(renamed.data())->version = head->version = 2;
  head->head_crc = core::crc32c(head, offsetof(SnapshotHead, head_crc));
  source_->publish(2);
  take_four_copies(at, 1);
  to_b_.lead_to(at.tcp_port);
  for (const std::string& lie : {old, announced, renamed}) {
    std::uint32_t port = 0;
    auto listener = net::listen_tcp("127.0.0.1", port);
    ASSERT_TRUE(listener);
    RelayOptions options;
    options.reach = [port](std::uint32_t) { return "127.0.0.1:" + std::to_string(port); };
    RemoteWeightSubscriber liar(wide(), PanelDtype::kF32, "a liar's host", core::host_memory(),
                                options);
    ASSERT_TRUE(receive(liar, 2, only_tcp(at)));
    std::atomic<int> asked{0};
    const std::jthread serves([&] {
      net::OwnedFd socket;
      if (!comes_true([&] { return bool(socket = net::accept_one(*listener)); })) return;
      ++asked;
      Hello hello;
      (void)receive_all(socket, &hello, sizeof hello, kPatient, "hello");
      (void)send_all(socket, lie.data(), lie.size(), kPatient, "a lie");
    });
    RemoteWeightSubscriber child(wide(), PanelDtype::kF32, "host B");
    const auto got = receive(child, 2, through(to_b_, at));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(holds_version(**got, 2));
    EXPECT_EQ(asked, 1);
  }
}

// The source is a process, which dies while B has a part from A; B gets the rest from A. A source
// that comes back has another key and other snapshots: nothing of the old one is passed on.
TEST_F(OneRelay, AVersionOutlivesItsSourceAndTheNextSourceIsAnother) {
  const auto published = [](ReaderProcess& process, core::Version version) {
    std::string word;
    WeightLocation at;
    std::istringstream(process.ask(std::to_string(version).insert(0, "publish "))) >> word >>
        at.socket >> at.tcp_host >> at.tcp_port >> at.key;
    at.host_id = own_host_id();
    return at;
  };
  ReaderProcess first(wide().vocab);
  const WeightLocation at = published(first, 1);
  take_four_copies(at, 1);
  start_relay(at, from_a_.address());
  from_a_.allow(stream_bytes_of(3));
  to_a_.allow_all();
  start_child(at);
  ASSERT_EQ(a_->hear(), "fetched 1");
  ASSERT_TRUE(comes_true([&] { return from_a_.passed() == stream_bytes_of(3); }));
  first.kill();
  from_a_.allow_all();
  expect_child_has(1);
  EXPECT_EQ(a_->ask("pack"), "ok 1");
  const auto lost = receive(b_, 2, only_tcp(at));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, core::ErrorCode::kPeerLost);

  ReaderProcess second(wide().vocab);
  const WeightLocation again = published(second, 1);
  EXPECT_NE(again.key, at.key);
  const auto got = receive(b_, 1, only_tcp(again));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 1));
  a_->say("source " + again.tcp_host + " " + std::to_string(again.tcp_port) + " " + again.key);
  EXPECT_EQ(a_->ask("fetch 1").substr(0, 5), "port ") << "a relay of its own for each source";
  EXPECT_EQ(a_->hear(), "fetched 1");
  EXPECT_EQ(a_->ask("pack"), "ok 1");
}

}  // namespace
}  // namespace troupe::weights
