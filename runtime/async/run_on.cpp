#include "runtime/async/run_on.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace troupe::async {

void post(const Executor& executor, std::function<void()> what) {
  boost::asio::post(executor, std::move(what));
}

task<void> run_on(Executor executor, task<void> body) {
  auto ended =
      boost::asio::co_spawn(std::move(executor), std::move(body), boost::asio::use_awaitable);
  co_await std::move(ended);
}

}  // namespace troupe::async
