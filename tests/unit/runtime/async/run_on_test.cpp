// Values that come back from coroutines on other strands and threads.
#include "runtime/async/run_on.hpp"

#include "runtime/async/io_threads.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace troupe::async {
namespace {

// A value that is neither copied nor made by default.
struct Token {
  explicit Token(int given) : number(std::make_unique<int>(given)) {}
  std::unique_ptr<int> number;
};

task<Token> token_here(int number, std::thread::id* thread) {
  *thread = std::this_thread::get_id();
  co_return Token(number);
}

task<int> token_there(Executor executor, std::thread::id* inner, std::thread::id* outer) {
  auto asked = run_on(std::move(executor), token_here(5, inner));
  const Token token = co_await std::move(asked);
  *outer = std::this_thread::get_id();
  co_return *token.number + 1;
}

}  // namespace

TEST(IoThreadsRun, GivesTheValueOfATask) {
  IoThreads io(1);
  std::thread::id thread;
  EXPECT_EQ(*io.run(token_here(3, &thread)).number, 3);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(RunOn, GivesTheValueAndGoesOnWhereItWas) {
  IoThreads home(1), away(1);
  std::thread::id inner, outer;
  EXPECT_EQ(home.run(token_there(away.make_strand(), &inner, &outer)), 6);
  EXPECT_NE(inner, outer);
}

}  // namespace troupe::async
