// A reward server of the benchmarks: the path of a request alone decides the score of its samples.
// The server remembers when each path first scored. Its handler runs on the server's strand; the
// other functions may be called from any thread. Bounded by the paths that are asked for.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/net/http_server.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::app {

// "lab-12" names an attached reward and its path, and determines its score: 7, one more than half
// of the number.
std::string lab_reward(std::uint64_t number);
std::optional<double> lab_score(const std::string& name);  // none for another name

class ScoreServer {
 public:
  static core::Result<std::unique_ptr<ScoreServer>> open();
  ~ScoreServer();

  std::string url(const std::string& name) const;
  // clock_ns() at the answer to its first samples.
  std::optional<std::int64_t> first_ns(const std::string& name) const;

 private:
  ScoreServer() : io_(1) {}
  async::task<net::HttpResponse> serve(net::HttpRequest request);

  async::IoThreads io_;
  std::unique_ptr<net::HttpServer> http_;
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> first_ns_;  // by path
};

}  // namespace troupe::app
