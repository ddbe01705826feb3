#include "runtime/sessions/session_routes.hpp"

#include "runtime/dialects/json_fields.hpp"
#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/readers.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/sessions/episode_rows.hpp"
#include "runtime/sessions/trace.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace troupe::sessions {

using dialects::api_error_response;
using dialects::ApiError;
using dialects::json_response;
using Json = nlohmann::ordered_json;
using net::HttpResponse;

namespace {

constexpr std::string_view kSessions = "/sessions";

HttpResponse refuse(int status, std::string message, std::string param = "") {
  return api_error_response(
      {.status = status, .message = std::move(message), .param = std::move(param)});
}

Json about(const Session& session) {
  const auto score = session.score();
  return {{"id", session.id()},
          {"calls", session.calls()},
          {"reward", score ? Json(*score) : Json()},
          {"forked_by_template", session.forked_by_template()},
          {"ended", session.ended()}};
}

HttpResponse trace_response(const Session& session) {
  auto samples = samples_of(session.tree(), 1, 0, {session.score(), true});
  if (samples.empty()) return json_response({{"schema_version", 1}, {"turns", Json::array()}});
  return json_response(training_trace(session.id(), {}, samples));
}

}  // namespace

bool SessionRoutes::takes(std::string_view path) {
  return path.empty() || path == "/traces" || path == "/reward" || path == "/end" ||
         dialects::reader_of(path) != nullptr;
}

std::optional<SessionRoutes::Place> SessionRoutes::place_of(std::string_view path,
                                                            std::string_view key) {
  Place out;
  const SessionWords given = session_words(key);
  if (path == kSessions) {
    out.opens = true;
    return out;
  }
  if (path.starts_with("/sessions/")) {
    const std::string_view rest = path.substr(kSessions.size() + 1);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const SessionWords named = session_words(rest.substr(0, slash));
    out.id = named.id;
    out.path = rest.substr(slash);
    out.session = host_.find(named.id);
    if (!out.session) return out;
    const SessionLock& lock = out.session->lock;
    out.let_in = (given.id == named.id && lock.opens(given.secret)) ||
                 (lock.in_path && lock.opens(named.secret));
    return out;
  }
  if (given.secret.empty()) return std::nullopt;
  out.session = host_.find(given.id);
  if (!out.session || !out.session->lock.opens(given.secret)) return std::nullopt;
  out.let_in = true;
  out.path = path;
  return out;
}

HttpResponse SessionRoutes::refuse_stranger(const Place& place) {
  return api_error_response(
      {.status = 401,
       .message = "session " + place.id +
                  " wants the key that its opening gave, as \"Authorization: Bearer KEY\"",
       .code = "invalid_api_key"},
      dialects::error_form_of(place.path));
}

async::task<HttpResponse> SessionRoutes::respond(SessionRoutes* self,
                                                 net::HttpRequest request,
                                                 Place place,
                                                 SessionClient client) {
  if (place.opens) {
    if (request.method != "POST") co_return refuse(405, "/sessions takes POST");
    co_return self->open(request, client);
  }
  if (!place.session) {
    co_return api_error_response(
        {.status = 404,
         .message = "there is no session '" + place.id + "' here; POST /sessions opens one",
         .code = "not_found"},
        dialects::error_form_of(place.path));
  }
  const OpenedSession& session = *place.session;
  self->host_.used(session.session->id());
  if (dialects::reader_of(place.path) != nullptr) {
    if (request.method != "POST") {
      co_return api_error_response({.status = 405, .message = place.path + " takes POST"},
                                   dialects::error_form_of(place.path));
    }
    auto answering =
        answer_session_call(&self->parts_, session.sampler, client.events, client.owner,
                            session.session, std::move(request), place.path);
    HttpResponse response = co_await std::move(answering);
    co_return response;
  }
  if (place.path == "/traces" && request.method == "GET")
    co_return trace_response(*session.session);
  if (place.path == "/reward" && request.method == "POST") co_return self->reward(request, session);
  if ((place.path == "/end" && request.method == "POST") ||
      (place.path.empty() && request.method == "DELETE")) {
    session.session->end();
    co_return json_response(about(*session.session));
  }
  if (place.path.empty() && request.method == "GET")
    co_return json_response(about(*session.session));
  co_return refuse(405, "/sessions/ID" + place.path + " does not take " + request.method);
}

HttpResponse SessionRoutes::open(const net::HttpRequest& request, const SessionClient& client) {
  const std::string body = request.body.empty() ? "{}" : request.body;
  const auto read = dialects::read_object(body, parts_.bounds);
  if (const auto* error = std::get_if<ApiError>(&read)) return api_error_response(*error);
  dialects::JsonFields fields(std::get<Json>(read));
  const bool in_path = fields.boolean("in_path", false);
  if (fields.error()) return api_error_response(*fields.error());
  const auto opened = host_.open(client.key, in_path);
  if (!opened) return api_error_response(dialects::api_error_of(opened.error()));
  const std::string& id = opened->session->id();
  const std::string key = opened->lock.key(id);
  Json answer = {{"id", id},
                 {"base_url", client.base + "/sessions/" + (in_path ? key : id) + "/v1"},
                 {"api_key", key}};
  if (!opened->task.empty()) answer["task"] = parse::written_json<Json>(opened->task);
  return json_response(answer);
}

HttpResponse SessionRoutes::reward(const net::HttpRequest& request, const OpenedSession& session) {
  const auto read = dialects::read_object(request.body, parts_.bounds);
  if (const auto* error = std::get_if<ApiError>(&read)) return api_error_response(*error);
  const Json& object = std::get<Json>(read);
  dialects::JsonFields fields(object);
  const Json* const value = fields.find("reward");
  if (value == nullptr || !value->is_number()) fields.complain("reward", "must be a number");
  std::optional<std::size_t> call;
  if (fields.find("call") != nullptr)
    call = static_cast<std::size_t>(fields.integer("call", 0, 0, INT32_MAX));
  const bool ends = fields.boolean("end", false);
  fields.end();
  if (fields.error()) return api_error_response(*fields.error());
  const auto given = session.session->reward(value->get<double>(), call);
  if (!given) return refuse(400, given.error().message, "reward");
  if (ends) session.session->end();
  return json_response(about(*session.session));
}

}  // namespace troupe::sessions
