// The HTTP server by which programs call the model of a run, each in the session of its episode:
// the APIs of `troupe serve` below /sessions/ID/, or with the session's key. Sessions are opened by
// the role alone. On loopback. Runs on a thread of its own; `open` and `close` on any. Bound: the
// sessions that are open, each with SessionBounds.
#pragma once

#include "actors/environment/call_sampler.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/net/http_server.hpp"
#include "runtime/sessions/session_routes.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::actors {

class SessionServer final : private sessions::SessionHost, private dialects::GenerationEvents {
 public:
  SessionServer(RoleContext context,
                std::shared_ptr<const dialects::ServedModel> model,
                const EpisodeSettings& settings);
  ~SessionServer() override;

  // Errors: kResources (no port).
  core::Result<void> start();
  // http://127.0.0.1:PORT/sessions/ID, below which the APIs are.
  std::string url(const sessions::Session& session) const;

  std::shared_ptr<sessions::Session> open(const EpisodeOrder& order);
  // Ends the session and forgets it.
  void close(const sessions::Session& session);

 private:
  struct Line {
    std::shared_ptr<sessions::Session> session;
    std::shared_ptr<CallSampler> sampler;
  };
  core::Result<sessions::OpenedSession> open(std::optional<std::size_t> owner) override;
  std::optional<sessions::OpenedSession> find(std::string_view id) override;
  void prompt(std::size_t) override {}
  void first_token(double) override {}
  void finished(std::size_t, engine::FinishReason, double) override {}
  void aborted(std::size_t) override {}
  static async::task<net::HttpResponse> respond(SessionServer* self, net::HttpRequest request);

  const RoleContext context_;
  const std::shared_ptr<const dialects::ServedModel> model_;
  const EpisodeSettings settings_;
  async::SteadyTimers timers_;
  dialects::TextThreads text_;
  const dialects::ServeBounds bounds_;
  const sessions::SessionCallParts parts_;
  sessions::SessionRoutes routes_;
  std::mutex mutex_;  // guards `sessions_`
  std::map<std::string, Line, std::less<>> sessions_;
  async::IoThreads io_{1};
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace troupe::actors
