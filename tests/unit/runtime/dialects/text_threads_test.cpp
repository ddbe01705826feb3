// Short bodies beside long ones: who waits for whom, and that both give their outcome.
#include "runtime/dialects/text_threads.hpp"

#include "runtime/async/io_threads.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace troupe::dialects {
namespace {

// The longest that a broken implementation makes the test wait.
constexpr std::chrono::seconds kPatience{20};

template <class Job>
async::task<void> read_into(TextThreads* threads, std::string body, Job job, std::size_t* out) {
  auto running = TextThreads::run(threads, std::move(body), std::move(job));
  auto outcome = co_await std::move(running);
  *out = outcome ? *outcome : 0;
}

TEST(TextThreads, AShortBodyWaitsForNoLongOne) {
  async::IoThreads io(1);
  TextThreads threads(4);
  std::promise<void> begun, go_on;
  bool was_let_go = false;
  std::size_t of_long = 0, of_short = 0;
  auto slow = [&, gate = go_on.get_future().share()](const std::string& body) {
    begun.set_value();
    was_let_go = gate.wait_for(kPatience) == std::future_status::ready;
    return core::Result<std::size_t>(body.size());
  };
  std::thread other([&] {
    const std::string body(TextThreads::kShortBody_bytes_max + 1, 'x');
    io.run(read_into(&threads, body, std::move(slow), &of_long));
  });
  begun.get_future().wait();
  auto quick = [](const std::string& body) { return core::Result<std::size_t>(body.size()); };
  io.run(
      read_into(&threads, std::string(TextThreads::kShortBody_bytes_max, 'y'), quick, &of_short));
  go_on.set_value();
  other.join();
  EXPECT_TRUE(was_let_go) << "the short one waited for the long one";
  EXPECT_EQ(of_short, TextThreads::kShortBody_bytes_max);
  EXPECT_EQ(of_long, TextThreads::kShortBody_bytes_max + 1);
}

}  // namespace
}  // namespace troupe::dialects
