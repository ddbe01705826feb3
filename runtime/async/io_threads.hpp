// The few threads on which coroutines run. Each role gets a strand on them; long work goes to
// device threads and the compute pool, so one or two threads are enough. Owned by the node;
// outlives every role.
#pragma once

#include "runtime/async/task.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::async {

class IoThreads {
 public:
  explicit IoThreads(int threads);
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;
  ~IoThreads();  // join()

  // A new strand: an executor that runs one handler at a time.
  Executor make_strand();

  // Runs `body` on a new strand and waits for its end. Not to be called from an io thread.
  void run(task<void> body);
  // Runs a body with a value, which it returns.
  template <class T>
  T run(task<T> body) {
    std::optional<T> value;
    run(detail::store(std::move(body), &value));
    return std::move(*value);
  }

  // Waits until nothing is left to do, then ends the threads. Idempotent.
  void join();

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::async
