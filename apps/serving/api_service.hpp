// The request handler of `troupe serve`: routes paths to their functions, checks API keys, and
// formats errors. Requests run on the HTTP server's strand; bodies are parsed and tokenized on
// other threads (TextThreads), so that a long one delays no other request. Owned by the command;
// outlives the HTTP server.
#pragma once

#include "apps/serving/engine_controls.hpp"
#include "apps/serving/learning_sessions.hpp"
#include "apps/serving/limits.hpp"
#include "apps/serving/server_pages.hpp"
#include "runtime/dialects/readers.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/dialects/text_threads.hpp"
#include "runtime/net/http.hpp"
#include "runtime/sessions/session_book.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::serving {

struct ApiServiceParts {
  const dialects::ServedModel& model;
  EnginePump& pump;
  ApiKeys keys;
  dialects::ServeBounds bounds = {};
  sessions::History history = sessions::History::kTemplate;
  // The sessions of the run that learns from this server; null: none does. Outlives the service.
  actors::environment::EpisodeSessions* episodes = nullptr;
  std::string dtype = "torch.float32";                   // as torch calls it
  std::string scheme = "http://";                        // of the server's address
  bool loopback = true;                                  // only this machine can connect
  std::size_t requests_max = limits::kServeConnections;  // at a time
  ReloadWeights reload = nullptr;                        // called on the engine's thread
};

class ApiService {
 public:
  explicit ApiService(ApiServiceParts parts);
  ~ApiService();
  ApiService(const ApiService&) = delete;
  ApiService& operator=(const ApiService&) = delete;

  // The handler for net::HttpServer.
  static async::task<net::HttpResponse> respond(ApiService* self, net::HttpRequest request);
  // Formats errors of the HTTP server itself (HttpServerOptions::complaint).
  static net::HttpResponse complaint(int status, const std::string& why, const std::string& path);

 private:
  using Response = net::HttpResponse;
  struct Route;
  static const std::vector<Route>& routes();            // all paths
  static const Route* route_of(std::string_view path);  // null: there is no such path
  static async::task<Response> route(ApiService* self, net::HttpRequest request);
  // Answers a request that costs something, within the limits of its key.
  static async::task<Response> work(ApiService* self,
                                    const Route& route,
                                    net::HttpRequest request,
                                    std::optional<std::size_t> key);
  static async::task<Response> generate(ApiService* self,
                                        dialects::Reader reader,
                                        net::HttpRequest request,
                                        dialects::GenerationEvents* events,
                                        std::uint32_t owner);
  static async::task<Response> convert(ApiService* self,
                                       const Route& route,
                                       net::HttpRequest request);
  // Answers a request of a session, or one that opens one. `key`: whose limits hold for it.
  static async::task<Response> in_session(ApiService* self,
                                          net::HttpRequest request,
                                          sessions::SessionRoutes::Place place,
                                          std::optional<std::size_t> key);
  // Runs what the request wants on the engine, if its key may control the server.
  static async::task<Response> control(ApiService* self,
                                       const Route& route,
                                       net::HttpRequest request,
                                       std::optional<std::size_t> key);
  static ServerPage index_page;
  sessions::SessionHost& sessions();
  // The error if the server has no model of this name, which may be empty.
  std::optional<dialects::ApiError> check_wanted(const std::string& name) const;

  const ApiServiceParts parts_;
  ServeMetrics metrics_;
  async::SteadyTimers timers_;
  ServerKeys keys_;
  const ServerFacts facts_;
  dialects::TextThreads text_;
  sessions::SessionBook book_;
  std::optional<LearningSessions> learning_;
  const sessions::SessionCallParts call_parts_;
  sessions::SessionRoutes routes_;
};

}  // namespace troupe::serving
