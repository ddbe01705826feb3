#include "apps/serving/api_service.hpp"

#include "apps/cli/build_facts.hpp"
#include "runtime/dialects/client_key.hpp"
#include "runtime/dialects/generation.hpp"
#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/messages_request.hpp"
#include "runtime/dialects/readers.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <ctime>
#include <string_view>
#include <utility>

namespace troupe::app {

using dialects::api_error_of;
using dialects::api_error_response;
using dialects::ApiError;
using dialects::Encoded;
using dialects::error_form_of;
using dialects::ErrorForm;
using dialects::GenerateRequest;
using dialects::Generation;
using dialects::GenerationParts;
using dialects::Read;
using dialects::Reader;
using dialects::reader_of;
using dialects::ServeBounds;
using dialects::ServedModel;
using dialects::TextThreads;
using dialects::TokenizeRequest;
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

ApiError no_tokenizer() {
  return {.status = 404,
          .message = "this server has no tokenizer (--skip-tokenizer-init)",
          .code = "not_found"};
}

HttpResponse json_response(const Json& value) {
  HttpResponse response;
  response.body = dialects::json_text(value);
  return response;
}

struct Path {
  std::string_view path, method;
};
constexpr std::string_view kModels = "/v1/models/";  // followed by a name
constexpr std::array kPaths = {Path{"/sessions", "POST"},
                               Path{"/v1/models", "GET"},
                               Path{kModels, "GET"},
                               Path{"/v1/completions", "POST"},
                               Path{"/v1/chat/completions", "POST"},
                               Path{"/inference/v1/generate", "POST"},
                               Path{"/v1/messages", "POST"},
                               Path{"/v1/messages/count_tokens", "POST"},
                               Path{"/tokenize", "POST"},
                               Path{"/detokenize", "POST"},
                               Path{"/tokenizer_info", "GET"},
                               Path{"/health", "GET"},
                               Path{"/server_info", "GET"},
                               Path{"/get_world_size", "GET"},
                               Path{"/healthz", "GET"},
                               Path{"/ping", "GET"},
                               Path{"/metrics", "GET"},
                               Path{"/version", "GET"},
                               Path{"/pause", "POST"},
                               Path{"/resume", "POST"},
                               Path{"/is_paused", "GET"},
                               Path{"/sleep", "POST"},
                               Path{"/wake_up", "POST"},
                               Path{"/is_sleeping", "GET"}};

bool is_index(const std::string& path) {
  return path == "/" || path == "/v1" || path == "/v1/";
}

// The HTTP method of a path; empty if the path is unknown.
std::string_view method_of(const std::string& path) {
  if (is_index(path)) return "GET";
  for (const Path& one : kPaths) {
    if (path == one.path || (one.path == kModels && path.starts_with(kModels))) return one.method;
  }
  return "";
}

// The list of all paths, for people who open the server in a browser.
HttpResponse index_page() {
  Json list = Json::array();
  for (const Path& one : kPaths) {
    const std::string name = one.path == kModels ? "NAME" : "";
    list.push_back({{"method", one.method}, {"path", std::string(one.path) + name}});
  }
  return json_response({{"paths", std::move(list)}});
}

// Paths that need no key, for monitoring: health and metrics.
bool is_open(const std::string& path) {
  return path == "/health" || path == "/healthz" || path == "/ping" || path == "/metrics";
}

// Paths that count or convert tokens, without a sample.
bool is_text(std::string_view path) {
  return path == "/tokenize" || path == "/detokenize" || path == "/v1/messages/count_tokens";
}

bool is_control(const std::string& path) {
  return path == "/sleep" || path == "/wake_up" || path == "/pause" || path == "/resume";
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

ApiService::ApiService(ApiServiceParts parts)
    : parts_(std::move(parts)),
      places_{static_cast<std::int64_t>(parts_.requests_max), parts_.keys.list().size() > 1},
      meters_(meters_of(parts_.keys, places_, metrics_, timers_)),
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

std::optional<std::size_t> ApiService::key_of(const HttpRequest& request, ErrorForm form) const {
  const auto found =
      parts_.keys.find(dialects::bearer_key(net::find_header(request.headers, "Authorization")));
  if (found || form != ErrorForm::kAnthropic) return found;
  return parts_.keys.find(net::find_header(request.headers, "x-api-key"));
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
    const bool owns = key && self->key_of(request, ErrorForm::kAnthropic) == key;
    if (!place->let_in && !owns) co_return sessions::SessionRoutes::refuse_stranger(*place);
  }
  if (of_session && !sessions::SessionRoutes::takes(place->path)) {
    request.path = place->path;  // a request to the server
    place.reset();
  }
  const std::string path = request.path;
  const std::string_view method = method_of(path);
  const ErrorForm form = error_form_of(place ? place->path : path);
  const bool lets_in = of_session && !is_control(path);  // the server itself is not a session's
  if (!lets_in) key = self->key_of(request, form);
  if (!is_open(path) && !lets_in && self->parts_.keys.any() && !key) {
    co_return refuse(401, "this server wants an API key, as \"Authorization: Bearer KEY\"",
                     "invalid_api_key", form);
  }
  if (place) {
    auto answering = in_session(self, std::move(request), std::move(*place), key);
    HttpResponse response = co_await std::move(answering);
    co_return response;
  }
  if (method.empty()) co_return refuse(404, "there is no " + path + " here", "not_found", form);
  const bool as_get = request.method == "HEAD" ? method == "GET" : request.method == method;
  if (!as_get) {
    HttpResponse wrong = refuse(405, path + " takes " + std::string(method), "", form);
    wrong.headers.emplace_back("Allow", std::string(method));
    co_return wrong;
  }
  if (is_index(path)) co_return index_page();
  if (reader_of(path) != nullptr || is_text(path)) {
    auto answering = work(self, std::move(request), key);
    HttpResponse response = co_await std::move(answering);
    co_return response;
  }
  if (is_control(path)) {
    auto answering = control(self, std::move(request), key);
    HttpResponse response = co_await std::move(answering);
    co_return response;
  }
  if (path == "/metrics") {
    HttpResponse page;
    page.content_type = "text/plain; version=0.0.4; charset=utf-8";
    std::vector<KeyUse> keys;
    for (const auto& meter : self->meters_)
      keys.push_back(meter->use());
    page.body =
        self->metrics_.render(self->parts_.pump.counters(), self->parts_.model.names.front(), keys);
    co_return page;
  }
  if (path == "/is_sleeping" || path == "/is_paused") {
    const engine::EngineState state = self->parts_.pump.counters().state;
    const bool is = path == "/is_paused" ? state.paused : !state.awake();
    co_return json_response({{path.substr(1), is}});
  }
  if (path == "/get_world_size") co_return json_response({{"world_size", 1}});
  if (path == "/server_info") co_return self->server_info();
  if (path == "/version") co_return json_response({{"version", build_version()}});
  if (path == "/tokenizer_info") {
    if (!self->parts_.model.tokenizer) co_return api_error_response(no_tokenizer());
    const text::SpecialTokens& special = self->parts_.model.tokenizer->special();
    const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    const auto& chat = self->parts_.model.chat;
    co_return json_response({{"bos_token", or_null(special.bos)},
                             {"eos_token", or_null(special.eos)},
                             {"pad_token", or_null(special.pad)},
                             {"chat_template", chat ? Json(chat->source()) : Json()}});
  }
  if (path.starts_with("/v1/models")) co_return self->models(path);
  if (!self->parts_.pump.counters().ready) co_return refuse(503, "no weights yet", "unavailable");
  co_return json_response({{"status", "ok"}});
}

HttpResponse ApiService::models(const std::string& path) const {
  if (!path.starts_with(kModels)) return json_response(dialects::model_list(parts_.model));
  const std::string name = path.substr(kModels.size());
  if (auto error = check_model_name(parts_.model, name)) return api_error_response(*error);
  return json_response(dialects::model_card(parts_.model, name));
}

// What clients of vLLM read of its configuration. There is no weight transfer into this server.
HttpResponse ApiService::server_info() const {
  const ServedModel& model = parts_.model;
  Json about = {
      {"model", model.root},
      {"served_model_name", model.names},
      {"max_model_len", model.context},
      {"dtype", parts_.dtype},
      {"max_logprobs", parts_.bounds.logprobs_max},
      {"logprobs_mode", parts_.bounds.processed_logprobs ? "processed_logprobs" : "raw_logprobs"},
      {"skip_tokenizer_init", !model.tokenizer}};
  Json parallel = {{"world_size", 1},
                   {"tensor_parallel_size", 1},
                   {"pipeline_parallel_size", 1},
                   {"data_parallel_size", 1}};
  return json_response({{"vllm_config",
                         {{"model_config", std::move(about)},
                          {"parallel_config", std::move(parallel)},
                          {"weight_transfer_config", nullptr}}},
                        {"version", build_version()}});
}

// The end of a request within the limits of its key, whose stream holds the lease.
HttpResponse leased(HttpResponse response, KeyMeter::Lease lease) {
  if (lease && response.stream) {
    response.stream = std::make_shared<LeasedStream>(std::move(response.stream), std::move(lease));
  }
  return response;
}

std::variant<KeyMeter::Lease, ApiError> lease_of(KeyMeter* meter) {
  return meter != nullptr ? meter->begin() : KeyMeter::Lease();
}

std::uint32_t ApiService::owner_of(std::optional<std::size_t> key) const {
  return key && places_.shared ? static_cast<std::uint32_t>(*key) + 1 : 0;
}

KeyMeter* ApiService::meter_of(std::optional<std::size_t> key) const {
  return key ? meters_[*key].get() : nullptr;
}

async::task<HttpResponse> ApiService::work(ApiService* self,
                                           HttpRequest request,
                                           std::optional<std::size_t> key) {
  KeyMeter* const meter = self->meter_of(key);
  auto lease = lease_of(meter);
  if (auto* error = std::get_if<ApiError>(&lease)) {
    co_return api_error_response(*error, error_form_of(request.path));
  }
  dialects::GenerationEvents* events = &self->metrics_;
  if (meter != nullptr) events = meter;
  HttpResponse response;
  if (is_text(request.path)) {
    auto answering = tokenize(self, std::move(request));
    response = co_await std::move(answering);
  } else {
    auto answering = generate(self, std::move(request), events, self->owner_of(key));
    response = co_await std::move(answering);
  }
  co_return leased(std::move(response), std::move(std::get<KeyMeter::Lease>(lease)));
}

async::task<HttpResponse> ApiService::in_session(ApiService* self,
                                                 HttpRequest request,
                                                 sessions::SessionRoutes::Place place,
                                                 std::optional<std::size_t> key) {
  KeyMeter* const meter = self->meter_of(key);
  const bool draws = place.session && reader_of(place.path) != nullptr;
  const ErrorForm form = error_form_of(place.path);
  if (draws && !self->parts_.pump.counters().ready) {
    co_return refuse(503, "there are no weights yet", "unavailable", form);
  }
  auto lease = lease_of(draws || place.opens ? meter : nullptr);
  if (auto* error = std::get_if<ApiError>(&lease)) co_return api_error_response(*error, form);
  sessions::SessionClient client{.key = key, .events = &self->metrics_};
  client.owner = self->owner_of(key);
  if (meter != nullptr) client.events = meter;
  client.base = self->parts_.scheme + std::string(net::find_header(request.headers, "Host"));
  auto answering = sessions::SessionRoutes::respond(&self->routes_, std::move(request),
                                                    std::move(place), std::move(client));
  HttpResponse response = co_await std::move(answering);
  co_return leased(std::move(response), std::move(std::get<KeyMeter::Lease>(lease)));
}

async::task<HttpResponse> ApiService::generate(ApiService* self,
                                               HttpRequest request,
                                               dialects::GenerationEvents* events,
                                               std::uint32_t owner) {
  const core::TimePoint began = self->timers_.now();
  const ErrorForm form = error_form_of(request.path);
  if (!self->parts_.pump.counters().ready) {
    co_return refuse(503, "there are no weights yet", "unavailable", form);
  }
  auto client = request.client;
  const Reader reader = reader_of(request.path);
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
std::variant<Json, ApiError> ApiService::convert(const std::string& path,
                                                 const std::string& body) const {
  const ServedModel& model = parts_.model;
  const bool back = path == "/detokenize";
  const bool count = path != "/tokenize" && !back;
  auto read = back    ? read_detokenize(body, parts_.bounds)
              : count ? dialects::read_count_tokens(body, parts_.bounds)
                      : read_tokenize(body, parts_.bounds);
  if (auto* error = std::get_if<ApiError>(&read)) return *error;
  const auto& wanted = std::get<TokenizeRequest>(read);
  if (auto error = check_wanted(wanted.model)) return *error;
  if (!model.tokenizer) return no_tokenizer();
  if (back) {
    auto text = model.tokenizer->decode(wanted.tokens);
    if (!text) return api_error_of(text.error());
    return Json{{"prompt", *text}};
  }
  auto encoded = encode_tokenize(model, wanted);
  if (auto* error = std::get_if<ApiError>(&encoded)) return *error;
  const auto& tokens = std::get<std::vector<std::int32_t>>(encoded);
  if (count) return Json{{"input_tokens", tokens.size()}};
  Json strings;
  for (const std::int32_t token : tokens) {
    if (wanted.token_strings) strings.push_back(model.tokenizer->id_to_token(token).value_or(""));
  }
  return Json{{"count", tokens.size()},
              {"max_model_len", model.context},
              {"tokens", tokens},
              {"token_strs", std::move(strings)}};
}

async::task<HttpResponse> ApiService::tokenize(ApiService* self, HttpRequest request) {
  const ErrorForm form = error_form_of(request.path);
  auto job = [self, path = request.path,
              form](const std::string& body) -> core::Result<HttpResponse> {
    const auto answer = self->convert(path, body);
    if (auto* error = std::get_if<ApiError>(&answer)) return api_error_response(*error, form);
    return json_response(std::get<Json>(answer));
  };
  auto answering = TextThreads::run(&self->text_, std::move(request.body), std::move(job));
  auto answered = co_await std::move(answering);
  if (!answered) co_return api_error_response(api_error_of(answered.error()), form);
  co_return std::move(*answered);
}

}  // namespace troupe::app
