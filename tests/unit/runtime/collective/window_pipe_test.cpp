// A window against a peer that hands over something else, or writes nonsense into it.
#include "runtime/collective/window_pipe.hpp"

#include "runtime/collective/limits.hpp"
#include "runtime/collective/rank_protocol.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>

namespace troupe::collective::test {
namespace {

constexpr std::uint64_t kHead = 4096;

class Windows : public ::testing::Test {
 protected:
  Windows() {
    int ends[2];
    TROUPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
                 "a pair of sockets");
    own_ = net::OwnedFd(ends[0]);
    peer_ = net::OwnedFd(ends[1]);
  }
  // What this side says to an offer of `bytes` that comes with `memory`.
  core::Result<std::unique_ptr<WindowPipe>> exchange(std::uint64_t bytes, int memory) {
    WindowOffer offer;
    offer.bytes = bytes;
    const bool sent = memory >= 0 ? net::send_with_fd(peer_, &offer, sizeof offer, memory)
                                  : ::send(peer_.get(), &offer, sizeof offer, 0) == sizeof offer;
    EXPECT_TRUE(sent);
    return WindowPipe::exchange(own_, 64, {std::chrono::seconds(60)}, "rank 1");
  }
  static core::SharedMemory memory(std::uint64_t bytes) {
    return *core::SharedMemory::create("a test", bytes, core::SharedMemory::Others::kWrite);
  }
  void expect_error(std::uint64_t bytes, int fd, const std::string& message) {
    const auto pipe = exchange(bytes, fd);
    ASSERT_FALSE(pipe);
    EXPECT_EQ(pipe.error().code, core::ErrorCode::kData);
    EXPECT_EQ(pipe.error().message, message);
  }

  net::OwnedFd own_, peer_;
};

TEST_F(Windows, GiveTheBytesThatCame) {
  const core::SharedMemory theirs = memory(kHead + 8);
  const auto pipe = exchange(8, theirs.fd());
  ASSERT_TRUE(pipe) << pipe.error().message;
  auto& head = *reinterpret_cast<RingHead*>(theirs.data());
  std::memcpy(theirs.data() + kHead, "abcdefgh", 8);
  char got[9] = "........";
  EXPECT_FALSE((*pipe)->ready(true, false));
  EXPECT_EQ((*pipe)->read(core::host_memory(), got, 3), 0u);
  head.written.store(2);
  EXPECT_TRUE((*pipe)->ready(true, false));
  EXPECT_EQ((*pipe)->read(core::host_memory(), got, 3), 1u);  // an eighth of the ring at a time
  EXPECT_EQ((*pipe)->read(core::host_memory(), got + 1, 2), 1u);
  EXPECT_EQ((*pipe)->read(core::host_memory(), got + 2, 1), 0u);
  EXPECT_STREQ(got, "ab......");
  EXPECT_EQ(head.taken.load(), 2u);
}

TEST_F(Windows, WakeAReaderThatSleeps) {
  const core::SharedMemory theirs = memory(kHead + 8);
  const auto pipe = exchange(8, theirs.fd());
  ASSERT_TRUE(pipe) << pipe.error().message;
  auto& head = *reinterpret_cast<RingHead*>(theirs.data());
  WindowOffer offer;
  net::OwnedFd fd;
  ASSERT_TRUE(
      net::receive_with_fd(peer_, &offer, sizeof offer, fd, {std::chrono::seconds(60)}, ""));
  head.written.store(1);
  char byte = 0;
  EXPECT_EQ((*pipe)->read(core::host_memory(), &byte, 1), 1u);
  EXPECT_LT(::recv(peer_.get(), &byte, 1, 0), 0);  // nobody sleeps
  head.written.store(2);
  head.writer_sleeps.store(1);
  EXPECT_EQ((*pipe)->read(core::host_memory(), &byte, 1), 1u);
  ASSERT_EQ(::recv(peer_.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, kWake);
  EXPECT_EQ(head.writer_sleeps.load(), 0u);
}

TEST_F(Windows, NonsenseInTheHeadEndsThePipe) {
  const core::SharedMemory theirs = memory(kHead + 8);
  const auto pipe = exchange(8, theirs.fd());
  ASSERT_TRUE(pipe) << pipe.error().message;
  reinterpret_cast<RingHead*>(theirs.data())->written.store(9);  // more than fits
  char got[16];
  EXPECT_EQ((*pipe)->read(core::host_memory(), got, sizeof got), 0u);
  EXPECT_TRUE((*pipe)->ended());
  EXPECT_FALSE((*pipe)->ready(true, true));  // so that its rank sleeps until the peer is gone
}

TEST_F(Windows, OtherOffersAreRefused) {
  const core::SharedMemory theirs = memory(kHead + 8);
  expect_error(9, theirs.fd(),
               "the shared memory of the window of rank 1 has 4104 bytes, 4105 were announced, or "
               "can shrink");
  expect_error(0, theirs.fd(), "the window of rank 1 is not one");
  expect_error(limits::kRankWindow_bytes_max + 1, theirs.fd(), "the window of rank 1 is not one");
  expect_error(8, -1, "the window of rank 1 is not one");
  const core::OwnedFd unsealed(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), kHead + 8), 0);
  expect_error(8, unsealed.get(),
               "the shared memory of the window of rank 1 has 4104 bytes, 4104 were announced, or "
               "can shrink");
}

}  // namespace
}  // namespace troupe::collective::test
