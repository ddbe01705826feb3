#include "actors/environment/session_server.hpp"

#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/readers.hpp"
#include "runtime/sessions/session_book.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors {
namespace {

constexpr std::size_t kTextJobs_max = 4096;

net::HttpResponse models_response(const dialects::ServedModel& model) {
  nlohmann::ordered_json list = {{"object", "list"}, {"data", nlohmann::ordered_json::array()}};
  for (const std::string& name : model.names)
    list["data"].push_back({{"id", name}, {"object", "model"}, {"owned_by", "troupe"}});
  net::HttpResponse out;
  out.body = list.dump();
  return out;
}

// The rules of a client's key: "Bearer KEY", or Anthropic's header.
std::string_view key_of_client(const net::HttpHeaders& headers) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = net::find_header(headers, "Authorization");
  if (given.starts_with(kBearer)) return given.substr(kBearer.size());
  return net::find_header(headers, "x-api-key");
}

}  // namespace

SessionServer::SessionServer(RoleContext context,
                             std::shared_ptr<const dialects::ServedModel> model,
                             const EpisodeSettings& settings,
                             std::function<void()> forked)
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
             std::move(forked),
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
  Line line{std::make_shared<sessions::Session>(sessions::new_session_id(), bounds),
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

async::task<core::Result<sessions::OpenedSession>> SessionServer::open(std::string,
                                                                       std::optional<std::size_t>) {
  co_return core::fail(core::ErrorCode::kInvalidArgument,
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
  auto place = self->routes_.place_of(request.path, key_of_client(request.headers));
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
