// Parses and tokenizes the bodies of requests on two threads: one for short bodies and one for long
// ones, so that a short request never waits behind a long one. Owned by the ApiService. Bound: each
// thread queues up to `requests_max` jobs.
#pragma once

#include "runtime/async/device_thread.hpp"

#include <malloc.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe::dialects {

class TextThreads {
 public:
  // Longer bodies go to the thread for long bodies.
  static constexpr std::size_t kShortBody_bytes_max = 64u << 10;
  // From this body size on, returning the freed memory is worth the cost of malloc_trim.
  static constexpr std::size_t kBigBody_bytes_min = 1u << 20;

  explicit TextThreads(std::size_t requests_max)
      : short_("text", nullptr, requests_max), long_("long text", nullptr, requests_max) {}

  // Runs `job(body)`, which returns a Result, on one of the two threads. After a big body, returns
  // the freed memory to the system, since the allocator would otherwise keep it.
  template <class Job>
  static async::task<std::invoke_result_t<Job&, const std::string&>> run(TextThreads* self,
                                                                         std::string body,
                                                                         Job job) {
    const std::size_t size = body.size();
    auto held = std::make_shared<std::string>(std::move(body));
    auto work = [held, job = std::move(job), size]() mutable {
      auto outcome = job(*held);
      std::string().swap(*held);
      if (size >= kBigBody_bytes_min) ::malloc_trim(0);
      return outcome;
    };
    auto running = (size > kShortBody_bytes_max ? self->long_ : self->short_).run(std::move(work));
    auto outcome = co_await std::move(running);
    co_return outcome;
  }

 private:
  async::DeviceThread short_, long_;
};

}  // namespace troupe::dialects
