// A version that comes in pieces: what has come is remembered and told, and what is wrong is named.
#include "runtime/weights/partial_snapshot.hpp"

#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

using core::ErrorCode;

class APartialSnapshot : public testing::Test {
 protected:
  // Reads from bytes_, from `at` on; ends with them.
  ReadBytes from(std::uint64_t& at) {
    return [this, &at](void* into, std::size_t size, const std::string& what) {
      if (at + size > bytes_.size())
        return core::Result<void>(core::fail(ErrorCode::kPeerLost, what));
      std::memcpy(into, bytes_.data() + at, size);
      at += size;
      return core::Result<void>();
    };
  }
  static std::string bytes_of(const Snapshot& snapshot) {
    return {snapshot.bytes(), snapshot.bytes() + snapshot.size()};
  }
  std::unique_ptr<Relay> new_relay() {
    auto made = Relay::create(key_, 1, options_);
    TROUPE_CHECK(made.has_value(), "a relay");
    return std::move(*made);
  }

  const std::string key_ = tests_location_key();
  const SnapshotShape expected_{tiny(), kernels::PanelDtype::kF32};
  const RelayOptions options_;
  std::unique_ptr<Relay> relay_ = new_relay();
  OpenedSnapshots opened_{expected_};
  std::vector<std::uint32_t> set_aside_;
  const StreamContext context_{
      expected_, {}, tests_key().public_key(), *relay_, options_, opened_, set_aside_, kPatient,
      "it",      {}};
  std::shared_ptr<Snapshot> source_ = snapshot_of(tiny(), 3, kBucket_bytes_min);
  std::string bytes_ = bytes_of(*source_);
  Answer answer_ = [this] {
    Answer answer;
    answer.version = 3;
    answer.bytes = source_->size();
    return answer;
  }();
};

TEST_F(APartialSnapshot, GoesOnAfterTheLastGoodBucket) {
  PartialSnapshot partial(context_);
  EXPECT_EQ(partial.hello_for(3, Wants::kStream).begun, 0u);
  std::uint64_t at = 0;
  ASSERT_TRUE(partial.begin(answer_, {}, from(at)));
  ASSERT_TRUE(partial.take_bucket(from(at)));
  ASSERT_TRUE(partial.take_bucket(from(at)));
  const Hello hello = partial.hello_for(4, Wants::kStream);
  EXPECT_EQ(hello.at_least, 4u);
  EXPECT_EQ(hello.begun, 3u);
  EXPECT_EQ(hello.buckets, 2u);
  answer_.first_bucket = 2;
  std::uint64_t again = 0;
  ASSERT_TRUE(partial.begin(answer_, {}, from(again)));
  EXPECT_EQ(partial.ready(), 2u);
  while (!partial.complete())
    ASSERT_TRUE(partial.take_bucket(from(at)));
  EXPECT_EQ(at, bytes_.size());
  EXPECT_EQ(bytes_of(partial.snapshot()), bytes_);
  EXPECT_TRUE(partial.arrived().verified);
}

TEST_F(APartialSnapshot, RefusesAWrongBucketAndTakesARightOne) {
  PartialSnapshot partial(context_);
  std::uint64_t at = 0;
  ASSERT_TRUE(partial.begin(answer_, {}, from(at)));
  const std::uint64_t first = at;
  bytes_[first + 5] ^= 1;
  EXPECT_EQ(partial.take_bucket(from(at)).error().code, ErrorCode::kData);
  EXPECT_EQ(partial.ready(), 0u);
  bytes_[first + 5] ^= 1;
  at = first;
  EXPECT_TRUE(partial.take_bucket(from(at)));
  EXPECT_EQ(partial.ready(), 1u);
}

TEST_F(APartialSnapshot, TakesNothingElseThanWasAnnounced) {
  PartialSnapshot partial(context_);
  std::uint64_t at = 0;
  answer_.version = 4;
  EXPECT_EQ(partial.begin(answer_, {}, from(at)).error().code, ErrorCode::kData);
  answer_.version = 3;
  answer_.first_bucket = 1;
  at = 0;
  EXPECT_EQ(partial.begin(answer_, {}, from(at)).error().code, ErrorCode::kData)
      << "nothing is here of it";
  bytes_.resize(100);
  at = 0;
  EXPECT_EQ(partial.begin(answer_, {}, from(at)).error().code, ErrorCode::kPeerLost);
}

TEST_F(APartialSnapshot, IsGivenUpWithItsFetch) {
  std::shared_ptr<Snapshot> newest;
  {
    PartialSnapshot partial(context_);
    std::uint64_t at = 0;
    ASSERT_TRUE(partial.begin(answer_, {}, from(at)));
    newest = relay_->pool(kernels::PanelDtype::kF32).lease_newest();
    EXPECT_FALSE(newest->abandoned());
  }
  EXPECT_TRUE(newest->abandoned());
}

}  // namespace
}  // namespace troupe::weights
