#include "runtime/sessions/session_calls.hpp"

#include "runtime/dialects/readers.hpp"
#include "runtime/sessions/said.hpp"

#include <charconv>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::sessions {

using dialects::ApiError;
using dialects::GenerateRequest;

namespace {

// A request that is ready to be run.
struct Ready {
  GenerateRequest request;
  dialects::Encoded encoded;
  CallPrompt prompt;
};
using Prepared = std::variant<Ready, ApiError>;

// How often a client has asked for the same before: what the SDKs of OpenAI and Anthropic say.
int retries_of(const net::HttpHeaders& headers) {
  const std::string_view text = net::find_header(headers, "x-stainless-retry-count");
  int count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

// Adds the samples of a request as calls.
class CallRecord final : public dialects::GenerationRecord {
 public:
  CallRecord(const dialects::ServedModel& model,
             std::shared_ptr<Session> session,
             std::shared_ptr<dialects::Sampler> sampler,
             GenerateRequest request,
             CallPrompt prompt)
      : model_(model),
        session_(std::move(session)),
        sampler_(std::move(sampler)),
        request_(std::move(request)),
        prompt_(std::move(prompt)),
        asked_(session_->begin(prompt_.tokens)) {}
  ~CallRecord() override {
    for (const std::size_t call : calls_)
      session_->drop(call);
  }

  core::Result<void> sample(const std::string& answer_id,
                            std::size_t choice,
                            const engine::Sample& sample) override {
    const bool aborted =
        sample.finish == engine::FinishReason::kAborted && sample.guide_error.empty();
    if (sample.tokens.empty() || aborted || session_->superseded(*asked_)) return {};
    TROUPE_TRY_ASSIGN(said, said_of(model_, request_, answer_id, choice, sample));
    calls_.push_back(session_->add(*asked_, prompt_, call_of(prompt_, said, sample)));
    return {};
  }
  void delivered() override { calls_.clear(); }

 private:
  const dialects::ServedModel& model_;
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<dialects::Sampler> sampler_;  // kept as long as the generation
  const GenerateRequest request_;
  const CallPrompt prompt_;
  const std::shared_ptr<Session::Request> asked_;
  std::vector<std::size_t> calls_;  // that were not delivered yet
};

std::optional<ApiError> check_request(const SessionCallParts& parts,
                                      const GenerateRequest& request) {
  if (!parts.any_model && !request.model.empty()) {
    if (auto error = dialects::check_model_name(parts.model, request.model)) return error;
  }
  if (request.scores_only()) {
    return ApiError{.message = "a call of a session draws tokens; leave max_tokens 0 out",
                    .param = "max_tokens"};
  }
  return std::nullopt;
}

Prepared prepare(const SessionCallParts& parts,
                 Session& session,
                 dialects::Reader reader,
                 const std::string& body) {
  auto read = reader(body, parts.bounds);
  if (auto* error = std::get_if<ApiError>(&read)) return *error;
  Ready out;
  out.request = std::move(std::get<GenerateRequest>(read));
  if (auto error = check_request(parts, out.request)) return *error;
  auto prompt =
      prompt_of_call(parts.model, session, out.request, parts.history, parts.now_unix_s());
  if (auto* error = std::get_if<ApiError>(&prompt)) return *error;
  out.prompt = std::move(std::get<CallPrompt>(prompt));
  auto fitted = dialects::fit_prompts(parts.model, out.request, {{out.prompt.tokens, ""}});
  if (auto* error = std::get_if<ApiError>(&fitted)) return *error;
  out.encoded = std::move(std::get<dialects::Encoded>(fitted));
  return out;
}

}  // namespace

async::task<net::HttpResponse> answer_session_call(const SessionCallParts* parts,
                                                   std::shared_ptr<dialects::Sampler> sampler,
                                                   dialects::GenerationEvents* events,
                                                   std::uint32_t owner,
                                                   std::shared_ptr<Session> session,
                                                   net::HttpRequest request,
                                                   std::string path) {
  const core::TimePoint began = parts->timers.now();
  const dialects::ErrorForm form = dialects::error_form_of(path);
  if (const auto refusal = session->refusal())
    co_return dialects::api_error_response({.status = 409, .message = *refusal}, form);
  const bool again = retries_of(request.headers) > 0;
  auto client = request.client;
  auto job = [parts, session, reader = dialects::reader_of(path)](
                 const std::string& body) -> core::Result<Prepared> {
    return prepare(*parts, *session, reader, body);
  };
  auto preparing =
      dialects::TextThreads::run(&parts->text, std::move(request.body), std::move(job));
  auto prepared = co_await std::move(preparing);
  if (!prepared)
    co_return dialects::api_error_response(dialects::api_error_of(prepared.error()), form);
  if (auto* error = std::get_if<ApiError>(&*prepared))
    co_return dialects::api_error_response(*error, form);
  Ready& ready = std::get<Ready>(*prepared);
  if (again) session->retry(ready.prompt.tokens);
  if (ready.prompt.rewritten) {
    session->count_fork();
    if (parts->forked) parts->forked();
  }
  auto record = std::make_unique<CallRecord>(parts->model, session, sampler, ready.request,
                                             std::move(ready.prompt));
  const dialects::GenerationParts shared{parts->model, *sampler, *events, parts->timers, owner};
  auto generation = std::make_shared<dialects::Generation>(
      shared, std::move(ready.request), std::move(ready.encoded), began, std::move(record));
  auto answering = dialects::Generation::respond(std::move(generation), std::move(client));
  net::HttpResponse response = co_await std::move(answering);
  co_return response;
}

}  // namespace troupe::sessions
