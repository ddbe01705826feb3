// Records by step: framing, batches, torn and damaged ends.
#include "runtime/store/step_log.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;
using store::StepLog;
using Texts = std::vector<std::string>;

class StepLogFiles : public testing::Test {
 protected:
  StepLogFiles() : log_(folder_.path(), store::system_disk()) {
    log_.add(1, "one");
    log_.add(2, std::string("t\0o", 3));
    log_.add(2, "");
    log_.add(2, "end");
    auto batch = log_.take();
    EXPECT_TRUE(log_.write(batch));
    EXPECT_TRUE(batch.empty());
  }
  Texts read(std::uint64_t step) {
    const auto content = log_.read(step);
    EXPECT_TRUE(content) << content.error().message;
    return content ? content->records : Texts{"unreadable"};
  }
  std::filesystem::path file(std::uint64_t step) {
    return folder_ / ("step_00000" + std::to_string(step) + ".log");
  }

  const Texts second_ = {std::string("t\0o", 3), "", "end"};
  test::TempFolder folder_;
  StepLog log_;
};

TEST_F(StepLogFiles, EachStepHasItsRecordsInOrder) {
  EXPECT_EQ(read(1), Texts{"one"});
  EXPECT_EQ(read(2), second_);
  EXPECT_EQ(read(3), Texts{});
  EXPECT_EQ(*log_.steps(), (std::vector<std::uint64_t>{1, 2}));
  // 8 bytes before each record.
  EXPECT_EQ(*log_.size_of(1), 8 + 3);
  EXPECT_EQ(*log_.size_of(2), (8 + 3) + 8 + (8 + 3));
  EXPECT_EQ(*log_.size_of(3), 0u) << "it has no file";
}

// CRC-32C of "123456789" is E3069283 (RFC 3720, and every table of check values).
TEST_F(StepLogFiles, ARecordIsLengthChecksumAndBytes) {
  log_.add(5, "123456789");
  const auto batch = log_.take();
  EXPECT_EQ(batch.at(5), std::string("\x09\0\0\0\x83\x92\x06\xE3", 8) + "123456789");
}

TEST_F(StepLogFiles, WhatIsPutBackStandsBeforeWhatCameLater) {
  log_.add(3, "first");
  auto batch = log_.take();
  log_.add(3, "second");
  log_.put_back(std::move(batch));
  auto both = log_.take();
  ASSERT_TRUE(log_.write(both));
  EXPECT_EQ(read(3), (Texts{"first", "second"}));
}

TEST_F(StepLogFiles, ATornEndIsCutAtEveryByteAndTheLogGoesOn) {
  const std::string whole = test::read_file(file(2));
  const std::size_t ends[] = {0, 11, 19, 30};  // of whole records
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    test::put_file(file(2), whole.substr(0, cut));
    std::size_t records = 0;
    while (ends[records + 1] <= cut)
      ++records;
    const auto content = log_.read(2);
    ASSERT_TRUE(content);
    EXPECT_EQ(content->records,
              Texts(second_.begin(), second_.begin() + static_cast<long>(records)))
        << cut;
    EXPECT_EQ(content->cut_bytes, cut - ends[records]) << cut;
    log_.add(2, "after");
    auto batch = log_.take();
    ASSERT_TRUE(log_.write(batch));
    ASSERT_EQ(read(2).size(), records + 1) << cut;
    EXPECT_EQ(read(2).back(), "after");
  }
}

TEST_F(StepLogFiles, ADamagedRecordEndsItsFile) {
  std::string whole = test::read_file(file(2));
  whole[8] ^= 1;  // the first byte of the first record
  test::put_file(file(2), whole);
  const auto content = log_.read(2);
  ASSERT_TRUE(content);
  EXPECT_TRUE(content->records.empty());
  EXPECT_EQ(content->cut_bytes, 30u);
  EXPECT_EQ(read(1), Texts{"one"});
}

TEST_F(StepLogFiles, StepsThatACheckpointCoversGo) {
  log_.add(3, "three");
  auto batch = log_.take();
  ASSERT_TRUE(log_.write(batch));
  ASSERT_TRUE(log_.remove_up_to(2));
  EXPECT_EQ(*log_.steps(), (std::vector<std::uint64_t>{3}));
}

TEST_F(StepLogFiles, AFailedWriteKeepsWhatIsNotOnDisk) {
  log_.add(3, "three");
  log_.add(4, "four");
  auto batch = log_.take();
  std::filesystem::create_directory(file(4));
  const auto written = log_.write(batch);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("step_000004.log"), std::string::npos);
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch.begin()->first, 4u);
  EXPECT_EQ(read(3), Texts{"three"});
}

}  // namespace
