// The request handler of `troupe serve`: routes paths to their functions, checks API keys, and
// formats errors. Requests run on the HTTP server's strand; bodies are parsed and tokenized on
// other threads (TextThreads), so that a long one delays no other request. Owned by the command;
// outlives the HTTP server.
#pragma once

#include "apps/serving/api_key.hpp"
#include "apps/serving/engine_pump.hpp"
#include "apps/serving/key_meter.hpp"
#include "apps/serving/learning_sessions.hpp"
#include "apps/serving/limits.hpp"
#include "apps/serving/serve_metrics.hpp"
#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/dialects/text_threads.hpp"
#include "runtime/net/http.hpp"
#include "runtime/sessions/session_book.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::app {

struct ApiServiceParts {
  const dialects::ServedModel& model;
  EnginePump& pump;
  ApiKeys keys;
  dialects::ServeBounds bounds = {};
  sessions::History history = sessions::History::kTemplate;
  // Of a run that learns from this server; null: none does. Outlives the service.
  actors::EpisodeSessions* episodes = nullptr;
  std::string dtype = "torch.float32";                   // as torch calls it
  std::string scheme = "http://";                        // of the server's address
  bool loopback = true;                                  // only this machine can connect
  std::size_t requests_max = limits::kServeConnections;  // at a time
  // Loads the weights again after a sleep that freed them (level 2); called on the engine's thread.
  // If null, such a sleep is refused.
  std::function<core::Result<std::shared_ptr<const model::PackedWeights>>()> reload = nullptr;
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
  static async::task<Response> route(ApiService* self, net::HttpRequest request);
  // Answers a request that costs something, within the limits of its key.
  static async::task<Response> work(ApiService* self,
                                    net::HttpRequest request,
                                    std::optional<std::size_t> key);
  static async::task<Response> generate(ApiService* self,
                                        net::HttpRequest request,
                                        dialects::GenerationEvents* events,
                                        std::uint32_t owner);
  static async::task<Response> tokenize(ApiService* self, net::HttpRequest request);
  // Answers a request of a session, or one that opens one. `key`: whose limits hold for it.
  static async::task<Response> in_session(ApiService* self,
                                          net::HttpRequest request,
                                          sessions::SessionRoutes::Place place,
                                          std::optional<std::size_t> key);
  sessions::SessionHost& sessions();
  // `key`: of the request.
  static async::task<Response> control(ApiService* self,
                                       net::HttpRequest request,
                                       std::optional<std::size_t> key);
  // The place of the key of a request, in Authorization or, for Anthropic's paths, in x-api-key.
  std::optional<std::size_t> key_of(const net::HttpRequest& request,
                                    dialects::ErrorForm form) const;
  // The meter of a key; null without one.
  KeyMeter* meter_of(std::optional<std::size_t> key) const;
  // Whose share of the engine its requests take; 0 where nobody shares it.
  std::uint32_t owner_of(std::optional<std::size_t> key) const;
  std::variant<nlohmann::ordered_json, dialects::ApiError> convert(const std::string& path,
                                                                   const std::string& body) const;
  Response models(const std::string& path) const;
  Response server_info() const;
  // The error if the server has no model of this name, which may be empty.
  std::optional<dialects::ApiError> check_wanted(const std::string& name) const;

  const ApiServiceParts parts_;
  ServeMetrics metrics_;
  async::SteadyTimers timers_;
  RequestPlaces places_;
  const std::vector<std::unique_ptr<KeyMeter>> meters_;  // by key
  dialects::TextThreads text_;
  sessions::SessionBook book_;
  std::optional<LearningSessions> learning_;
  const sessions::SessionCallParts call_parts_;
  sessions::SessionRoutes routes_;
};

}  // namespace troupe::app
