// Lines over a pair of local sockets: whole, in pieces, too long, and the end of the connection.
#include "runtime/net/line_pair.hpp"

#include "runtime/async/io_threads.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace troupe::net {
namespace {

using core::ErrorCode;

class LinePairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto* ends : {&written_, &answered_})
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->data()), 0);
    pair_ = std::make_unique<LinePair>(io_.make_strand(), OwnedFd(written_[0]),
                                       OwnedFd(answered_[0]), "first\nsec", 10);
  }
  void TearDown() override {
    pair_.reset();
    ::close(written_[1]);
    if (answered_[1] >= 0) ::close(answered_[1]);
  }
  void answer(const std::string& text) {
    ASSERT_EQ(::write(answered_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  core::Result<std::string> read() { return io_.run(pair_->read()); }

  async::IoThreads io_{1};
  std::array<int, 2> written_{}, answered_{};
  std::unique_ptr<LinePair> pair_;
};

}  // namespace

TEST_F(LinePairTest, ReadsLinesHoweverTheyCome) {
  EXPECT_EQ(*read(), "first");
  answer("ond\nthird\n\nfo");
  EXPECT_EQ(*read(), "second");
  EXPECT_EQ(*read(), "third");
  EXPECT_EQ(*read(), "");
  answer("urth\n");
  EXPECT_EQ(*read(), "fourth");
}

TEST_F(LinePairTest, TheEndAndALineThatIsTooLongAreErrors) {
  EXPECT_EQ(*read(), "first");
  answer("ond and more");
  EXPECT_EQ(read().error().code, ErrorCode::kData);
  ::close(std::exchange(answered_[1], -1));
  LinePair other(io_.make_strand(), OwnedFd(), OwnedFd(), "last\nhalf", 10);
  EXPECT_EQ(*io_.run(other.read()), "last");
  EXPECT_EQ(io_.run(other.read()).error().code, ErrorCode::kClosed);
}

TEST_F(LinePairTest, WritesBytesUntilItIsClosed) {
  EXPECT_TRUE(io_.run(pair_->write("a\nb\n")));
  std::array<char, 16> got{};
  EXPECT_EQ(::read(written_[1], got.data(), got.size()), 4);
  EXPECT_EQ(std::string(got.data(), 4), "a\nb\n");
  pair_->close();
  EXPECT_EQ(io_.run(pair_->write("c\n")).error().code, ErrorCode::kClosed);
}

}  // namespace troupe::net
