// A reward server for benchmarks: a request's path alone decides the score of its samples. The
// server remembers when each path first scored. The handler runs on the server's strand; the other
// functions may be called from any thread. Memory: one entry per path that scored.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/net/http_server.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::bench {

// The name of an attached reward and of its path: "lab-12" for 12.
std::string lab_reward(std::uint64_t number);
// The score that such a reward gives: 1 + number / 2. nullopt for another name.
std::optional<double> lab_score(const std::string& name);

class ScoreServer {
 public:
  static core::Result<std::unique_ptr<ScoreServer>> open();
  ~ScoreServer();

  std::string url(const std::string& name) const;
  // clock_ns() when reward `name` scored its first samples; nullopt before that.
  std::optional<std::int64_t> first_ns(const std::string& name) const;

 private:
  ScoreServer() : io_(1) {}
  async::task<net::HttpResponse> serve(net::HttpRequest request);

  async::IoThreads io_;
  std::unique_ptr<net::HttpServer> http_;
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> first_ns_;  // by reward name
};

}  // namespace troupe::bench
