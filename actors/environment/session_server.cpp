#include "actors/environment/session_server.hpp"

#include "runtime/core/secret.hpp"
#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/client_key.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {
namespace {

constexpr std::size_t kTextJobs_max = 4096;

net::HttpResponse models_response(const dialects::ServedModel& model) {
  net::HttpResponse out;
  out.body = dialects::model_list(model).dump();
  return out;
}

}  // namespace

SessionServer::SessionServer(RoleContext context,
                             std::shared_ptr<const dialects::ServedModel> model,
                             const EpisodeSettings& settings)
    : context_(std::move(context)),
      model_(std::move(model)),
      settings_(settings),
      text_(kTextJobs_max),
      parts_{*model_,
             timers_,
             text_,
             bounds_,
             settings_.history,
             [now = settings.now_unix_s] { return now; },
             nullptr,
             true},
      routes_(parts_, *this) {}

SessionServer::~SessionServer() {
  if (server_) server_->stop();
  io_.join();
}

core::Result<void> SessionServer::start() {
  net::HttpServerOptions options;
  options.watch_clients = true;
  TROUPE_TRY_SET(server_,
                 net::HttpServer::open(io_, std::move(options), [this](net::HttpRequest request) {
                   return respond(this, std::move(request));
                 }));
  return {};
}

std::string SessionServer::url(const sessions::Session& session) const {
  return "http://127.0.0.1:" + std::to_string(server_->port()) + "/sessions/" + session.id();
}

std::shared_ptr<sessions::Session> SessionServer::open(const EpisodeOrder& order) {
  sessions::SessionBounds bounds;
  bounds.calls_max = static_cast<std::size_t>(settings_.turns_max);
  Line line{
      std::make_shared<sessions::Session>(core::random_hex(sessions::kSessionId_bytes), bounds),
      std::make_shared<CallSampler>(context_, order)};
  const std::lock_guard lock(mutex_);
  sessions_[line.session->id()] = line;
  return line.session;
}

void SessionServer::close(const sessions::Session& session) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session.id());
  if (found == sessions_.end()) return;
  found->second.session->end();
  found->second.sampler->close();
  sessions_.erase(found);
}

core::Result<sessions::OpenedSession> SessionServer::open(std::optional<std::size_t>) {
  return core::fail(core::ErrorCode::kInvalidArgument,
                    "the sessions of this run are opened by its episodes");
}

std::optional<sessions::OpenedSession> SessionServer::find(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  return sessions::OpenedSession{found->second.session, found->second.sampler};
}

async::task<net::HttpResponse> SessionServer::respond(SessionServer* self,
                                                      net::HttpRequest request) {
  auto place = self->routes_.place_of(request.path, dialects::client_key(request.headers));
  if (!place) {
    co_return dialects::api_error_response(
        {.status = 401, .message = "this server answers the sessions of its episodes alone"},
        dialects::error_form_of(request.path));
  }
  if (place->session && !sessions::SessionRoutes::takes(place->path)) {
    if (place->path == "/v1/models") co_return models_response(*self->model_);
    co_return dialects::api_error_response(
        {.status = 404, .message = "there is no " + place->path + " here", .code = "not_found"},
        dialects::error_form_of(place->path));
  }
  sessions::SessionClient client;
  client.events = self;
  client.base = "http://" + std::string(net::find_header(request.headers, "Host"));
  auto answering = sessions::SessionRoutes::respond(&self->routes_, std::move(request),
                                                    std::move(*place), std::move(client));
  net::HttpResponse response = co_await std::move(answering);
  co_return response;
}

}  // namespace troupe::actors
