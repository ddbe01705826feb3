#include "actors/environment/session_server.hpp"

#include "runtime/core/open_files.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/client_key.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors::environment {
namespace {

constexpr std::size_t kTextJobs_max = 4096;

net::HttpResponse models_response(const dialects::ServedModel& model) {
  net::HttpResponse out;
  out.body = dialects::model_list(model).dump();
  return out;
}

}  // namespace

SessionServer::SessionServer(EpisodeSessions& sessions,
                             std::shared_ptr<const dialects::ServedModel> model,
                             const EpisodeSettings& settings)
    : model_(std::move(model)),
      text_(kTextJobs_max),
      parts_{*model_,
             timers_,
             text_,
             bounds_,
             settings.history,
             [now = settings.now_unix_s] { return now; },
             nullptr,
             true},
      routes_(parts_, sessions) {}

SessionServer::~SessionServer() {
  if (server_) server_->stop();
  io_.join();
}

core::Result<void> SessionServer::start(std::optional<SessionAddress> address) {
  address_ = std::move(address);
  net::HttpServerOptions options;
  options.watch_clients = true;
  options.connections_max = core::share_of_files(options.connections_max);
  if (address_) {
    options.host = address_->host;
    options.port = address_->port;
  }
  TROUPE_TRY_SET(server_,
                 net::HttpServer::open(io_, std::move(options), [this](net::HttpRequest request) {
                   return respond(this, std::move(request));
                 }));
  return {};
}

std::string SessionServer::address() const {
  const std::string host = address_ ? address_->host : "127.0.0.1";
  return "http://" + host + ":" + std::to_string(server_->port());
}

std::string SessionServer::url(const sessions::Session& session) const {
  return address() + "/sessions/" + session.id();
}

bool SessionServer::has_key(const net::HttpRequest& request) const {
  return address_ && !address_->key.empty() &&
         core::same_secret(dialects::client_key(request.headers), address_->key);
}

std::optional<dialects::ApiError> SessionServer::refuse_opening(
    const net::HttpRequest& request) const {
  if (!address_)
    return dialects::ApiError{.status = 403,
                              .message = "the sessions of this run are opened by its episodes"};
  if (address_->key.empty() || has_key(request)) return std::nullopt;
  return dialects::ApiError{.status = 401,
                            .message =
                                "opening a session wants the key of the run (env.listen_key), as "
                                "\"Authorization: Bearer KEY\""};
}

async::task<net::HttpResponse> SessionServer::respond(SessionServer* self,
                                                      net::HttpRequest request) {
  auto place = self->routes_.place_of(request.path, dialects::client_key(request.headers));
  if (!place) {
    co_return dialects::api_error_response(
        {.status = 401, .message = "this server answers the sessions of its episodes alone"},
        dialects::error_form_of(request.path));
  }
  if (place->session && !place->let_in && !self->has_key(request))
    co_return sessions::SessionRoutes::refuse_stranger(*place);
  if (place->session && !sessions::SessionRoutes::takes(place->path)) {
    if (place->path == "/v1/models") co_return models_response(*self->model_);
    co_return dialects::api_error_response(
        {.status = 404, .message = "there is no " + place->path + " here", .code = "not_found"},
        dialects::error_form_of(place->path));
  }
  if (place->opens) {
    const auto refusal = self->refuse_opening(request);
    if (refusal) co_return dialects::api_error_response(*refusal);
  }
  sessions::SessionClient client;
  client.events = self;
  client.base = "http://" + std::string(net::find_header(request.headers, "Host"));
  auto answering = sessions::SessionRoutes::respond(&self->routes_, std::move(request),
                                                    std::move(*place), std::move(client));
  net::HttpResponse response = co_await std::move(answering);
  co_return response;
}

}  // namespace troupe::actors::environment
