#include "runtime/async/io_threads.hpp"

#include <pthread.h>

#include <exception>
#include <future>
#include <memory>

#include "runtime/core/check.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>

namespace troupe::async {

IoThreads::IoThreads(int threads) : context_(threads), guard_(context_.get_executor()) {
  TROUPE_CHECK(threads >= 1, "somebody has to run the coroutines");
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this]() noexcept {
      pthread_setname_np(pthread_self(), "troupe-io");
      context_.run();
    });
  }
}

IoThreads::~IoThreads() { join(); }

Executor IoThreads::make_strand() { return boost::asio::make_strand(context_.get_executor()); }

void IoThreads::run(task<void> body) {
  auto done = std::make_shared<std::promise<void>>();
  auto finished = [done](std::exception_ptr error) {
    if (error) {
      done->set_exception(error);
    } else {
      done->set_value();
    }
  };
  auto future = done->get_future();
  boost::asio::co_spawn(make_strand(), std::move(body), std::move(finished));
  future.get();
}

void IoThreads::join() {
  guard_.reset();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace troupe::async
