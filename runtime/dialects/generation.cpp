#include "runtime/dialects/generation.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/dialects/logprob_json.hpp"
#include "runtime/store/sha256.hpp"

#include <chrono>
#include <ctime>
#include <random>

namespace troupe::dialects {

namespace {

std::uint64_t random_word() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

AnswerName new_name(const GenerateRequest& request) {
  const std::string text = core::printed("%016lx%016lx", random_word(), random_word());
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  if (!request.request_id.empty()) return {request.request_id, now};
  switch (request.dialect) {
    case Dialect::kChat:
      return {"chatcmpl-" + text, now};
    case Dialect::kCompletion:
      return {"cmpl-" + text, now};
    case Dialect::kMessages:
      return {"msg_" + text, now};
    case Dialect::kTokens:
      break;
  }
  return {text, now};
}

ErrorForm form_of(Dialect dialect) {
  return dialect == Dialect::kMessages ? ErrorForm::kAnthropic : ErrorForm::kOpenAi;
}

// The engine's salt for a text; 0 for none.
std::uint64_t salt_of(const std::string& text) {
  if (text.empty()) return 0;
  return std::stoull(store::sha256_text(text).substr(0, 16), nullptr, 16) | 1;
}

double seconds(core::Duration span) {
  return std::chrono::duration<double>(span).count();
}

}  // namespace

// The body of a streamed response: returns new events each time the server asks for a piece.
class Generation::Events final : public net::HttpStream {
 public:
  explicit Events(std::shared_ptr<Generation> generation) : generation_(std::move(generation)) {}

  async::task<std::optional<std::string>> next() override {
    Generation& self = *generation_;
    for (;;) {
      if (!self.events_.empty()) {
        std::optional<std::string> piece(std::exchange(self.events_, std::string()));
        co_return piece;
      }
      if (ended_) {
        if (self.record_ && !self.error_) self.record_->delivered();
        co_return std::nullopt;
      }
      if (self.over()) {
        ended_ = true;
        self.events_ =
            self.error_ ? self.answer_->error_event(*self.error_) : self.answer_->last_events();
        continue;
      }
      const bool there = co_await advance(&self);
      if (!there) co_return std::nullopt;
    }
  }

 private:
  std::shared_ptr<Generation> generation_;
  bool ended_ = false;
};

Generation::Generation(const GenerationParts& parts,
                       GenerateRequest request,
                       Encoded encoded,
                       core::TimePoint began,
                       std::unique_ptr<GenerationRecord> record)
    : parts_(parts),
      request_(std::move(request)),
      encoded_(std::move(encoded)),
      began_(began),
      name_(new_name(request_)),
      answer_(make_answer(parts.model, request_, encoded_.prompts, name_, parts.sampler.version())),
      record_(std::move(record)),
      mail_(std::make_shared<Mail>(parts.timers)) {}

Generation::~Generation() {
  for (const auto& [id, place] : groups_) {
    parts_.sampler.abort({id});
    if (!error_) parts_.events.aborted(static_cast<std::size_t>(place.left));
  }
}

void Generation::submit(async::Executor executor) {
  const std::uint64_t seed = request_.seed.value_or(random_word());
  for (std::size_t i = 0; i < encoded_.prompts.size(); ++i) {
    engine::GroupRequest group;
    group.id = parts_.sampler.next_id();
    group.prompt = encoded_.prompts[i].tokens;
    group.samples = request_.n;
    group.priority = request_.priority;
    group.owner = parts_.owner;
    group.cache_salt = salt_of(request_.cache_salt);
    group.seed = request_.seed ? seed : core::derive_seed(seed, i);
    group.sampling = request_.sampling;
    group.sampling.max_new_tokens = encoded_.max_new_tokens[i];
    group.guide = encoded_.guide;
    const bool restricted = encoded_.guide != nullptr || request_.sampling.truncates();
    const bool is_wanted = request_.processed_logprobs || record_ != nullptr;
    group.sampling.kept_mass = restricted && is_wanted;
    groups_[group.id.value] = {i, request_.n};
    parts_.events.prompt(group.prompt.size());
    parts_.sampler.submit(std::move(group), request_.stream, executor,
                          [mail = mail_](engine::GroupNews news) {
                            mail->news.push_back(std::move(news));
                            mail->changed.notify_all();
                          });
  }
}

async::task<bool> Generation::advance(Generation* self) {
  auto mail = self->mail_;
  while (mail->news.empty() && !mail->gone) {
    const bool woken = co_await mail->changed.wait(async::Deadline::none());
    static_cast<void>(woken);
  }
  if (mail->gone) co_return false;
  for (engine::GroupNews& news : std::exchange(mail->news, {}))
    self->take(std::move(news));
  co_return true;
}

void Generation::take(engine::GroupNews news) {
  const auto found = groups_.find(news.group.value);
  if (found == groups_.end() || error_) return;
  const std::size_t prompt = found->second.prompt;
  if (news.first_token) parts_.events.first_token(seconds(parts_.timers.now() - began_));
  if (request_.processed_logprobs) {
    for (engine::Sample& part : news.grown)
      process_logprobs(part, request_.sampling);
    for (engine::Sample& sample : news.finished)
      process_logprobs(sample, request_.sampling);
  }
  for (const engine::Sample& part : news.grown) {
    auto events = answer_->grow_event(choice_of(prompt, part), part);
    if (!events) return fail(events.error());
    events_ += *events;
  }
  for (const engine::Sample& sample : news.finished) {
    take_sample(prompt, sample);
    --found->second.left;
  }
  if (news.error) return fail(*news.error);
  if (found->second.left == 0) groups_.erase(found);
}

void Generation::take_sample(std::size_t prompt, const engine::Sample& sample) {
  const std::size_t choice = choice_of(prompt, sample);
  parts_.events.finished(sample.tokens.size(), sample.finish,
                         seconds(parts_.timers.now() - began_));
  if (record_) {
    const auto kept = record_->sample(name_.id, choice, sample);
    if (!kept) return fail(kept.error());
  }
  if (!request_.stream) {
    const auto taken = answer_->finish(choice, sample);
    if (!taken) fail(taken.error());
    return;
  }
  auto events = answer_->finish_event(choice, sample);
  if (!events) return fail(events.error());
  events_ += *events;
}

void Generation::fail(const core::Error& error) {
  if (!error_) error_ = api_error_of(error);
}

async::task<net::HttpResponse> Generation::respond(std::shared_ptr<Generation> self,
                                                   std::shared_ptr<net::HttpPresence> client) {
  if (client) {
    client->on_gone([mail = self->mail_] {
      mail->gone = true;
      mail->changed.notify_all();
    });
  }
  self->submit(co_await boost::asio::this_coro::executor);
  net::HttpResponse response;
  while (!self->over() && !(self->request_.stream && !self->events_.empty())) {
    const bool there = co_await advance(self.get());
    if (!there) co_return response;  // the client has disconnected; nothing reads this
  }
  if (self->error_ && self->events_.empty())
    co_return api_error_response(*self->error_, form_of(self->request_.dialect));
  if (!self->request_.stream) {
    response.body = self->answer_->body();
    if (self->record_) self->record_->delivered();
    co_return response;
  }
  response.content_type = "text/event-stream; charset=utf-8";
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.stream = std::make_shared<Events>(self);
  co_return response;
}

}  // namespace troupe::dialects
