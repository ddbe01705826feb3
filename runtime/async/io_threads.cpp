#include "runtime/async/io_threads.hpp"

#include "runtime/core/check.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <pthread.h>

namespace troupe::async {

IoThreads::IoThreads(int threads) : context_(threads), guard_(context_.get_executor()) {
  TROUPE_CHECK(threads >= 1, "the coroutines need a thread");
  threads_.reserve(static_cast<std::size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this]() noexcept {
        pthread_setname_np(pthread_self(), "troupe-io");
        context_.run();
      });
    }
  } catch (...) {  // the system gives no more threads; those that there are would wait for work
    join();
    throw;
  }
}

IoThreads::~IoThreads() {
  join();
}

Executor IoThreads::make_strand() {
  return boost::asio::make_strand(context_.get_executor());
}

void IoThreads::run(task<void> body) {
  boost::asio::co_spawn(make_strand(), std::move(body), boost::asio::use_future).get();
}

void IoThreads::join() {
  guard_.reset();
  threads_.clear();
}

}  // namespace troupe::async
