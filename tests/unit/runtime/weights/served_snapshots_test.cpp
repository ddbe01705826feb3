// What a server sends of a snapshot, byte by byte, and what its receivers hold: by hand, without a
// server.
#include "runtime/weights/reader_lease.hpp"
#include "runtime/weights/snapshot_stream.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

namespace troupe::weights {
namespace {

class StreamOfASnapshot : public testing::Test {
 protected:
  StreamOfASnapshot() {
    std::array<int, 2> ends{};
    TROUPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0, "a pair");
    server_ = net::OwnedFd(ends[0]);
    receiver_ = net::OwnedFd(ends[1]);
  }
  // Sends until there is nothing more to send, and reads it all.
  SnapshotStream::State flow(SnapshotStream& stream) {
    for (;;) {
      const auto state = stream.send(server_, counted_);
      char bytes[4096];
      for (ssize_t n = 0; (n = ::recv(receiver_.get(), bytes, sizeof bytes, 0)) > 0;)
        got_.append(bytes, static_cast<std::size_t>(n));
      if (state != SnapshotStream::State::kFlows) return state;
    }
  }
  std::string of(std::uint64_t from, std::uint64_t to) const {
    return {snapshot_->bytes() + from, snapshot_->bytes() + to};
  }

  std::shared_ptr<Snapshot> snapshot_ = snapshot_of(tiny(), 3, kBucket_bytes_min);
  const SnapshotShape shape_ = snapshot_->shape();
  const std::uint64_t image_ = shape_.data_offset();
  net::OwnedFd server_, receiver_;
  std::atomic<std::uint64_t> counted_{0};
  std::string got_;
};

TEST_F(StreamOfASnapshot, HasHeadTableAndTheBucketsThatAreLeft) {
  ASSERT_GT(shape_.buckets, 3u);
  SnapshotStream stream(*snapshot_, 2);
  EXPECT_EQ(stream.buckets_taken(server_), 0u);
  EXPECT_EQ(flow(stream), SnapshotStream::State::kDone);
  EXPECT_EQ(got_, of(0, image_) + of(image_ + 2 * kBucket_bytes_min, snapshot_->size()));
  EXPECT_EQ(counted_, got_.size());
  EXPECT_EQ(stream.sent(), got_.size());
  EXPECT_TRUE(stream.has_moved(server_));
  EXPECT_FALSE(stream.has_moved(server_)) << "not since";
}

TEST_F(StreamOfASnapshot, WaitsForBucketsThatAreStillToCome) {
  snapshot_->set_ready(1);
  SnapshotStream stream(*snapshot_, 0);
  EXPECT_EQ(flow(stream), SnapshotStream::State::kStarved);
  EXPECT_TRUE(stream.is_starved());
  EXPECT_EQ(got_, of(0, image_ + kBucket_bytes_min));
  EXPECT_EQ(stream.buckets_taken(server_), 1u);
  snapshot_->set_ready(3);
  EXPECT_EQ(flow(stream), SnapshotStream::State::kStarved);
  EXPECT_EQ(stream.buckets_taken(server_), 3u);
  snapshot_->set_ready(shape_.buckets);
  EXPECT_EQ(flow(stream), SnapshotStream::State::kDone);
  EXPECT_EQ(got_, of(0, snapshot_->size()));
}

TEST_F(StreamOfASnapshot, IsLostWithItsReceiver) {
  SnapshotStream stream(*snapshot_, 0);
  receiver_.close();
  EXPECT_EQ(stream.send(server_, counted_), SnapshotStream::State::kLost);
  EXPECT_EQ(counted_, 0u);
}

class LeaseOfAReader : public testing::Test {
 protected:
  void publish(core::Version version) {
    auto taken = shelf_.pool.take([&] { return Snapshot::create(writer_.shape()); });
    TROUPE_CHECK(taken.has_value(), "a snapshot");
    fill(**taken, team_, writer_, params_, version);
    shelf_.pool.offer(std::move(*taken));
  }
  core::SerialTeam team_;
  const model::ParamStore params_{tiny(5)};
  ImageWriter writer_{tiny(5), kernels::PanelDtype::kF32};
  ImageShelves shelves_;
  ImageShelves::Shelf& shelf_ = shelves_.of(kernels::PanelDtype::kF32);
};

TEST_F(LeaseOfAReader, SaysWhatThereIs) {
  ReaderLease lease;
  Hello hello;
  hello.at_least = 2;
  EXPECT_EQ(lease.take(shelf_, hello, false).status, AnswerStatus::kNothing);
  EXPECT_FALSE(lease);
  publish(1);
  const Answer older = lease.take(shelf_, hello, false);
  EXPECT_EQ(older.status, AnswerStatus::kOlder);
  EXPECT_EQ(older.version, 1u);
  EXPECT_EQ(older.bytes, 0u);
  lease.end();
  publish(2);
  const Answer here = lease.take(shelf_, hello, true);
  EXPECT_EQ(here.status, AnswerStatus::kHere);
  EXPECT_EQ(here.version, 2u);
  EXPECT_EQ(here.buffer_id, lease.host()->id());
  EXPECT_EQ(here.bytes, lease.host()->size());
  EXPECT_EQ(here.kept, 1u);
  lease.end();
  EXPECT_FALSE(lease);
  hello.wants = Wants::kDevice;
  EXPECT_EQ(lease.take(shelf_, hello, false).status, AnswerStatus::kNoDevice);
  hello.wants = Wants::kStream;
  hello.exact = 1;
  hello.at_least = 7;
  EXPECT_EQ(lease.take(shelf_, hello, false).status, AnswerStatus::kReplaced);
}

TEST_F(LeaseOfAReader, IsKeptUntilTheLastOfThoseItIsKeptForIsDone) {
  publish(1);
  ReaderLease one, other, late;
  EXPECT_EQ(one.take(shelf_, Hello(), true).kept, 1u);
  EXPECT_EQ(other.take(shelf_, Hello(), true).kept, 1u);
  publish(2);
  EXPECT_TRUE(shelf_.pool.keeps_older());
  EXPECT_EQ(late.take(shelf_, Hello(), true).kept, 0u) << "another one is kept";
  late.end();
  EXPECT_TRUE(shelf_.pool.keeps_older());
  one.stop_keeping();
  one.end();
  EXPECT_TRUE(shelf_.pool.keeps_older()) << "the other one needs it still";
  other.end();
  EXPECT_FALSE(shelf_.pool.keeps_older());
  EXPECT_EQ(late.take(shelf_, Hello(), true).kept, 1u);
  late.end();
}

}  // namespace
}  // namespace troupe::weights
