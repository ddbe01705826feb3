#include "apps/bench/score_server.hpp"

#include "apps/bench/figures.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace troupe::bench {

using nlohmann::json;

namespace {
constexpr std::string_view kPrefix = "lab-";
}

std::string lab_reward(std::uint64_t number) {
  return std::string(kPrefix) + std::to_string(number);
}

std::optional<double> lab_score(const std::string& name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string number = name.substr(kPrefix.size());
  if (number.empty() || number.size() > 9 || !std::all_of(number.begin(), number.end(), digit))
    return std::nullopt;
  return 1 + 0.5 * static_cast<double>(std::stoul(number));
}

core::Result<std::unique_ptr<ScoreServer>> ScoreServer::open() {
  std::unique_ptr<ScoreServer> server(new ScoreServer());
  ScoreServer* const self = server.get();
  TROUPE_TRY_ASSIGN(http, net::HttpServer::open(self->io_, {}, [self](net::HttpRequest request) {
                      return self->serve(std::move(request));
                    }));
  self->http_ = std::move(http);
  return server;
}

ScoreServer::~ScoreServer() {
  if (http_) http_->stop();
  io_.join();
}

async::task<net::HttpResponse> ScoreServer::serve(net::HttpRequest request) {
  net::HttpResponse response;
  const json asked = json::parse(request.body, nullptr, false);
  const std::string name = request.path.substr(std::min<std::size_t>(request.path.size(), 1));
  const std::optional<double> score = lab_score(name);
  if (!asked.is_object() || !asked.contains("query") || !score) {
    response.status = 400;
    co_return response;
  }
  const std::vector<double> scores(asked["query"].size(), *score);
  const json reply = {{"rewards", scores}};
  response.body = reply.dump();
  const std::lock_guard lock(mutex_);
  if (!scores.empty()) first_ns_.try_emplace(name, clock_ns());
  co_return response;
}

std::string ScoreServer::url(const std::string& name) const {
  return "http://127.0.0.1:" + std::to_string(http_->port()) + "/" + name;
}

std::optional<std::int64_t> ScoreServer::first_ns(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = first_ns_.find(name);
  return found == first_ns_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace troupe::bench
