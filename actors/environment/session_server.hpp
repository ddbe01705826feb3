// The HTTP server by which programs call the model of a run, each in the session of its episode:
// the APIs of `troupe serve` below /sessions/ID/, or with the session's key. Runs on a thread of
// its own. Bound: the sessions that are open, each with SessionBounds.
#pragma once

#include "actors/environment/episode_sessions.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/net/http_server.hpp"
#include "runtime/sessions/session_routes.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::actors::environment {

// Where programs from outside open sessions.
struct SessionAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  std::string key;         // required by POST /sessions; empty: none
  std::string key_file{};  // where it is, for the log
};

class SessionServer final : private dialects::GenerationEvents {
 public:
  // `sessions` outlives the server.
  SessionServer(EpisodeSessions& sessions,
                std::shared_ptr<const dialects::ServedModel> model,
                const EpisodeSettings& settings);
  ~SessionServer() override;

  // Begins to answer. Without an address sessions are opened by `sessions` alone, and the server is
  // on loopback. Errors: kConfig (the address), kResources (no port).
  core::Result<void> start(std::optional<SessionAddress> address = std::nullopt);
  // http://HOST:PORT
  std::string address() const;
  // The base URL of a session, below which its APIs are.
  std::string url(const sessions::Session& session) const;

 private:
  void prompt(std::size_t) override {}
  void first_token(double) override {}
  void finished(std::size_t, engine::FinishReason, double) override {}
  void aborted(std::size_t) override {}
  static async::task<net::HttpResponse> respond(SessionServer* self, net::HttpRequest request);

  std::optional<dialects::ApiError> refuse_opening(const net::HttpRequest& request) const;
  // Whether the request has the key for opening sessions, which also lets into each of them.
  bool has_key(const net::HttpRequest& request) const;

  const std::shared_ptr<const dialects::ServedModel> model_;
  async::SteadyTimers timers_;
  dialects::TextThreads text_;
  const dialects::ServeBounds bounds_;
  const sessions::SessionCallParts parts_;
  sessions::SessionRoutes routes_;
  std::optional<SessionAddress> address_;
  async::IoThreads io_{1};
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace troupe::actors::environment
