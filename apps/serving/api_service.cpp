#include "apps/serving/api_service.hpp"

#include "apps/serving/text_answers.hpp"
#include "runtime/dialects/client_key.hpp"
#include "runtime/dialects/generation.hpp"
#include "runtime/dialects/json_text.hpp"

#include <nlohmann/json.hpp>

#include <ctime>
#include <utility>

namespace troupe::serving {

using dialects::api_error_of;
using dialects::api_error_response;
using dialects::ApiError;
using dialects::Encoded;
using dialects::error_form_of;
using dialects::ErrorForm;
using dialects::GenerateRequest;
using dialects::Generation;
using dialects::GenerationParts;
using dialects::json_response;
using dialects::Read;
using dialects::Reader;
using dialects::ServedModel;
using dialects::TextThreads;
using Json = nlohmann::ordered_json;
using net::HttpRequest;
using net::HttpResponse;

namespace {

HttpResponse refuse(int status,
                    std::string message,
                    std::string code = "",
                    ErrorForm form = ErrorForm::kOpenAi) {
  return api_error_response(
      {.status = status, .message = std::move(message), .code = std::move(code)}, form);
}

// A stream that holds its key's lease until it ends.
class LeasedStream final : public net::HttpStream {
 public:
  LeasedStream(std::shared_ptr<net::HttpStream> stream, KeyMeter::Lease lease)
      : lease_(std::move(lease)), stream_(std::move(stream)) {}
  async::task<std::optional<std::string>> next() override { return stream_->next(); }

 private:
  const KeyMeter::Lease lease_;
  const std::shared_ptr<net::HttpStream> stream_;
};

struct ReadAndEncoded {
  GenerateRequest request;
  Encoded encoded;
};
using Prepared = std::variant<ReadAndEncoded, ApiError>;

}  // namespace

// Who may make a request: anybody, for monitoring; who has a key; who may control the server.
enum class Access { kOpen, kKey, kControl };

// One path: who may ask, and what answers.
struct ApiService::Route {
  std::string_view method, path;
  // Nothing: the routes of sessions answer.
  std::variant<std::monostate, ServerPage*, Reader, TextConversion*, EngineAction*> handler = {};
  Access access = Access::kKey;

  bool is_page() const { return path == "/" || path == "/v1" || path == "/v1/"; }
  bool fits(std::string_view asked) const {
    return asked == path || (path == kModelPath && asked.starts_with(kModelPath));
  }
};

const std::vector<ApiService::Route>& ApiService::routes() {
  static const std::vector<Route> all = [] {
    std::vector<Route> list = {
        {"GET", "/", &index_page},           {"GET", "/v1", &index_page},
        {"GET", "/v1/", &index_page},        {"POST", "/sessions"},
        {"GET", "/v1/models", &models_page}, {"GET", kModelPath, &models_page},
    };
    for (const dialects::ReaderRow& row : dialects::kReaders)
      list.push_back({"POST", row.path, row.reader});
    const std::vector<Route> others = {
        {"POST", "/v1/messages/count_tokens", &serving::count_tokens},
        {"POST", "/tokenize", &serving::tokenize},
        {"POST", "/detokenize", &serving::detokenize},
        {"GET", "/tokenizer_info", &tokenizer_page},
        {"GET", "/health", &health_page, Access::kOpen},
        {"GET", "/server_info", &server_page},
        {"GET", "/get_world_size", &world_size_page},
        {"GET", "/healthz", &health_page, Access::kOpen},
        {"GET", "/ping", &health_page, Access::kOpen},
        {"GET", "/metrics", &metrics_page, Access::kOpen},
        {"GET", "/version", &version_page},
    };
    list.insert(list.end(), others.begin(), others.end());
    for (const ControlRow& row : control_rows()) {
      list.push_back({"POST", row.path, row.action, Access::kControl});
      if (row.state != nullptr) list.push_back({"GET", row.state_path, row.state});
    }
    return list;
  }();
  return all;
}

const ApiService::Route* ApiService::route_of(std::string_view path) {
  for (const Route& route : routes())
    if (route.fits(path)) return &route;
  return nullptr;
}

ApiService::ApiService(ApiServiceParts parts)
    : parts_(std::move(parts)),
      keys_(parts_.keys, parts_.requests_max, metrics_, timers_),
      facts_{parts_.model, parts_.bounds, parts_.dtype, parts_.pump, metrics_, keys_},
      text_(parts_.requests_max),
      book_(parts_.pump, timers_, {}),
      call_parts_{parts_.model,
                  timers_,
                  text_,
                  parts_.bounds,
                  parts_.history,
                  [] { return static_cast<std::int64_t>(std::time(nullptr)); },
                  [this] { metrics_.forked(); }},
      routes_(call_parts_, sessions()) {}

ApiService::~ApiService() = default;

sessions::SessionHost& ApiService::sessions() {
  if (parts_.episodes == nullptr) return book_;
  return learning_.emplace(*parts_.episodes, book_);
}

net::HttpResponse ApiService::complaint(int status,
                                        const std::string& why,
                                        const std::string& path) {
  return refuse(status, why, "", error_form_of(path));
}

std::optional<ApiError> ApiService::check_wanted(const std::string& name) const {
  return name.empty() ? std::nullopt : check_model_name(parts_.model, name);
}

async::task<HttpResponse> ApiService::respond(ApiService* self, HttpRequest request) {
  auto answering = route(self, std::move(request));
  HttpResponse response = co_await std::move(answering);
  if (response.status >= 400) self->metrics_.refused();
  co_return response;
}

async::task<HttpResponse> ApiService::route(ApiService* self, HttpRequest request) {
  auto place = self->routes_.place_of(request.path, dialects::client_key(request.headers));
  const bool of_session = place && place->session;  // whose key lets the client in
  std::optional<std::size_t> key;
  if (of_session) {
    key = place->session->owner;
    // So does the key that opened it.
    const bool owns = key && self->keys_.find(request, ErrorForm::kAnthropic) == key;
    if (!place->let_in && !owns) co_return sessions::SessionRoutes::refuse_stranger(*place);
  }
  if (of_session && !sessions::SessionRoutes::takes(place->path)) {
    request.path = place->path;  // a request to the server
    place.reset();
  }
  const std::string path = request.path;
  const Route* const found = route_of(path);
  const Access access = found != nullptr ? found->access : Access::kKey;
  const ErrorForm form = error_form_of(place ? place->path : path);
  const bool lets_in = of_session && access != Access::kControl;  // the server is not a session's
  if (!lets_in) key = self->keys_.find(request, form);
  if (access != Access::kOpen && !lets_in && self->keys_.any() && !key) {
    co_return refuse(401, "this server wants an API key, as \"Authorization: Bearer KEY\"",
                     "invalid_api_key", form);
  }
  if (place) {
    auto answering = in_session(self, std::move(request), std::move(*place), key);
    HttpResponse response = co_await std::move(answering);
    co_return response;
  }
  if (found == nullptr) co_return refuse(404, "there is no " + path + " here", "not_found", form);
  const std::string method(found->method);
  const bool fits = request.method == "HEAD" ? method == "GET" : request.method == method;
  if (!fits) {
    HttpResponse wrong = refuse(405, path + " takes " + method, "", form);
    wrong.headers.emplace_back("Allow", method);
    co_return wrong;
  }
  if (const auto* page = std::get_if<ServerPage*>(&found->handler))
    co_return (*page)(self->facts_, path);
  auto answering = access == Access::kControl ? control(self, *found, std::move(request), key)
                                              : work(self, *found, std::move(request), key);
  HttpResponse response = co_await std::move(answering);
  co_return response;
}

// The list of all paths, for people who open the server in a browser.
HttpResponse ApiService::index_page(const ServerFacts&, const std::string&) {
  Json list = Json::array();
  for (const Route& one : routes()) {
    if (one.is_page()) continue;
    const std::string name = one.path == kModelPath ? "NAME" : "";
    list.push_back({{"method", std::string(one.method)}, {"path", std::string(one.path) + name}});
  }
  return json_response({{"paths", std::move(list)}});
}

// The end of a request within the limits of its key, whose stream holds the lease.
HttpResponse leased(HttpResponse response, KeyMeter::Lease lease) {
  if (lease && response.stream)
    response.stream = std::make_shared<LeasedStream>(std::move(response.stream), std::move(lease));
  return response;
}

async::task<HttpResponse> ApiService::work(ApiService* self,
                                           const Route& route,
                                           HttpRequest request,
                                           std::optional<std::size_t> key) {
  KeyMeter* const meter = self->keys_.meter(key);
  auto lease = self->keys_.begin(key);
  if (auto* error = std::get_if<ApiError>(&lease))
    co_return api_error_response(*error, error_form_of(request.path));
  dialects::GenerationEvents* events = &self->metrics_;
  if (meter != nullptr) events = meter;
  auto answering = std::holds_alternative<Reader>(route.handler)
                       ? generate(self, std::get<Reader>(route.handler), std::move(request), events,
                                  self->keys_.owner(key))
                       : convert(self, route, std::move(request));
  HttpResponse response = co_await std::move(answering);
  co_return leased(std::move(response), std::move(std::get<KeyMeter::Lease>(lease)));
}

async::task<HttpResponse> ApiService::in_session(ApiService* self,
                                                 HttpRequest request,
                                                 sessions::SessionRoutes::Place place,
                                                 std::optional<std::size_t> key) {
  KeyMeter* const meter = self->keys_.meter(key);
  const bool draws = place.session && dialects::reader_of(place.path) != nullptr;
  const ErrorForm form = error_form_of(place.path);
  if (draws && !self->parts_.pump.counters().ready)
    co_return refuse(503, "there are no weights yet", "unavailable", form);
  auto lease = self->keys_.begin(draws || place.opens ? key : std::nullopt);
  if (auto* error = std::get_if<ApiError>(&lease)) co_return api_error_response(*error, form);
  sessions::SessionClient client{.key = key, .events = &self->metrics_};
  client.owner = self->keys_.owner(key);
  if (meter != nullptr) client.events = meter;
  client.base = self->parts_.scheme + std::string(net::find_header(request.headers, "Host"));
  auto answering = sessions::SessionRoutes::respond(&self->routes_, std::move(request),
                                                    std::move(place), std::move(client));
  HttpResponse response = co_await std::move(answering);
  co_return leased(std::move(response), std::move(std::get<KeyMeter::Lease>(lease)));
}

async::task<HttpResponse> ApiService::generate(ApiService* self,
                                               Reader reader,
                                               HttpRequest request,
                                               dialects::GenerationEvents* events,
                                               std::uint32_t owner) {
  const core::TimePoint began = self->timers_.now();
  const ErrorForm form = error_form_of(request.path);
  if (!self->parts_.pump.counters().ready)
    co_return refuse(503, "there are no weights yet", "unavailable", form);
  auto client = request.client;
  auto job = [self, reader](const std::string& body) -> core::Result<Prepared> {
    Read read = reader(body, self->parts_.bounds);
    if (auto* error = std::get_if<ApiError>(&read)) return Prepared(*error);
    auto& wanted = std::get<GenerateRequest>(read);
    if (auto error = self->check_wanted(wanted.model)) return Prepared(*error);
    auto encoded = encode_request(self->parts_.model, wanted);
    if (auto* error = std::get_if<ApiError>(&encoded)) return Prepared(*error);
    return Prepared(ReadAndEncoded{std::move(wanted), std::move(std::get<Encoded>(encoded))});
  };
  auto preparing = TextThreads::run(&self->text_, std::move(request.body), std::move(job));
  auto prepared = co_await std::move(preparing);
  if (!prepared) co_return api_error_response(api_error_of(prepared.error()), form);
  if (auto* error = std::get_if<ApiError>(&*prepared)) co_return api_error_response(*error, form);
  auto& ready = std::get<ReadAndEncoded>(*prepared);
  const GenerationParts parts{self->parts_.model, self->parts_.pump, *events, self->timers_, owner};
  auto generation = std::make_shared<Generation>(parts, std::move(ready.request),
                                                 std::move(ready.encoded), began);
  auto answering = Generation::respond(std::move(generation), std::move(client));
  HttpResponse response = co_await std::move(answering);
  co_return response;
}

// Answers a request that wants tokens counted or converted; on a thread for texts.
async::task<HttpResponse> ApiService::convert(ApiService* self,
                                              const Route& route,
                                              HttpRequest request) {
  const ErrorForm form = error_form_of(request.path);
  auto job = [self, convert = std::get<TextConversion*>(route.handler),
              form](const std::string& body) -> core::Result<HttpResponse> {
    const auto answer = convert(self->parts_.model, self->parts_.bounds, body);
    if (auto* error = std::get_if<ApiError>(&answer)) return api_error_response(*error, form);
    return json_response(std::get<Json>(answer));
  };
  auto answering = TextThreads::run(&self->text_, std::move(request.body), std::move(job));
  auto answered = co_await std::move(answering);
  if (!answered) co_return api_error_response(api_error_of(answered.error()), form);
  co_return std::move(*answered);
}

async::task<HttpResponse> ApiService::control(ApiService* self,
                                              const Route& route,
                                              HttpRequest request,
                                              std::optional<std::size_t> key) {
  const std::string why_not = self->keys_.control_refusal(key);
  if (!why_not.empty()) co_return complaint(403, why_not, request.path);
  if (!self->parts_.loopback && !self->keys_.any()) {
    const std::string why = "beyond loopback " + request.path + " wants a server with an API key";
    co_return complaint(403, why, request.path);
  }
  auto control = std::make_shared<EngineControl>();
  control->query = std::move(request.query);
  control->body = std::move(request.body);
  control->reload = self->parts_.reload;
  EnginePump::Call call = [control, action = std::get<EngineAction*>(route.handler)](
                              engine::EngineDriver& driver) { return action(driver, *control); };
  auto calling = self->parts_.pump.on_engine(std::move(call));
  const core::Result<void> done = co_await std::move(calling);
  if (!done) co_return api_error_response(api_error_of(done.error()));
  HttpResponse response;
  response.body = control->report.dump();
  co_return response;
}

}  // namespace troupe::serving
