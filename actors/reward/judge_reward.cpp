#include "actors/reward/judge_reward.hpp"

#include "actors/reward/busy_calls.hpp"
#include "actors/reward/chat_json.hpp"
#include "actors/reward/http_servers.hpp"
#include "actors/reward/judge_questions.hpp"
#include "actors/reward/limits.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/net/url.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace troupe::actors::reward {
namespace {

// What is wrong with one request, and not with the judge: too long, or refused for what it says.
bool judges_request(int status) {
  return status == 400 || status == 413 || status == 422;
}

std::string sick_of(const net::HttpReply& reply) {
  const auto text = read_chat_reply(reply.body);
  return text ? std::string() : text.error().message;
}

HttpServersOptions servers_options(const std::string& key) {
  HttpServersOptions options;
  options.what = "judge";
  if (!key.empty()) options.headers.emplace_back("Authorization", "Bearer " + key);
  options.secret = key;
  options.sick = &sick_of;
  return options;
}

class JudgeReward final : public RewardCalls {
 public:
  JudgeReward(JudgeOptions options, std::vector<std::string> urls)
      : options_(std::move(options)), servers_(std::move(urls), servers_options(options_.key)) {}

  std::string name() const override { return "judge"; }
  RewardReads reads() const override {
    RewardReads read;
    read.messages = true;
    return read;
  }

  wire::Amounts amounts() const override {
    wire::Amounts amounts = servers_.amounts();
    amounts.emplace_back("judge_retries", static_cast<double>(retries_));
    amounts.emplace_back("judge_unparsed", static_cast<double>(unparsed_));
    return amounts;
  }

  void begin(const RoleContext& context) override {
    context_ = context;
    servers_.begin(context);
  }

  async::task<Answer> score(std::vector<RewardGroup> groups, core::Duration deadline) override {
    const BusyCalls::Guard guard(busy_, context_.activity);
    const std::vector<JudgeQuestion> questions = judge_questions(options_.rubric, groups);
    std::vector<JudgeOutcome> outcomes(questions.size());
    std::vector<async::task<core::Result<void>>> asking;
    for (std::size_t i = 0; i < questions.size(); ++i)
      asking.push_back(
          ask(this, &groups[questions[i].group], questions[i], deadline, &outcomes[i]));
    auto ended = co_await async::all(std::move(asking));
    if (!ended) {
      keep(groups, questions, outcomes);
      co_return ended.failure();
    }
    auto scores = judge_scores(options_.rubric, groups, questions, outcomes);
    co_return scores;
  }

 private:
  // Asks until the answer parses, at most `tries` times.
  static async::task<core::Result<void>> ask(JudgeReward* self,
                                             const RewardGroup* group,
                                             JudgeQuestion question,
                                             core::Duration deadline,
                                             JudgeOutcome* out) {
    const Rubric& rubric = self->options_.rubric;
    co_await self->gate_.enter();
    const core::AtExit leave([self] { self->gate_.leave(); });
    ChatQuestion chat;
    chat.user = rubric.ask(texts_of(question, *group));
    if (const auto kept = self->kept_.find(chat.user); kept != self->kept_.end()) {
      *out = std::move(kept->second);
      self->kept_.erase(kept);
      co_return core::Result<void>();
    }
    chat.model = self->options_.judge_model;
    chat.system = rubric.system;
    chat.temperature = rubric.temperature;
    chat.max_tokens = rubric.max_tokens;
    chat.seed = rubric.seed;
    for (int tried = 1;; ++tried) {
      TROUPE_CO_TRY_ASSIGN(answer, co_await self->answer_to(&chat, deadline, out));
      if (out->value || !out->cause.empty()) co_return core::Result<void>();
      out->value =
          rubric.kind == RubricKind::kPointwise ? rubric.number(answer) : rubric.verdict(answer);
      if (out->value) co_return core::Result<void>();
      if (tried >= rubric.tries) {
        ++self->unparsed_;
        out->cause = "the judge's answer does not parse (" + std::to_string(tried) +
                     (tried == 1 ? " try): '" : " tries): '") + self->servers_.shown(answer) +
                     "'; change prompt, pattern or tries of the rubric";
        co_return core::Result<void>();
      }
      ++self->retries_;
      ++out->retries;
      ++chat.seed;
      chat.temperature = std::max(rubric.temperature, rubric.retry_temperature);
    }
  }

  // The text of an answer; a refusal of this question is the outcome's cause.
  async::task<core::Result<std::string>> answer_to(const ChatQuestion* chat,
                                                   core::Duration deadline,
                                                   JudgeOutcome* out) {
    std::string body = chat_request(*chat);
    TROUPE_CO_TRY_ASSIGN(reply, co_await servers_.post(std::move(body), deadline));
    const int status = reply.http.status;
    if (status < 200 || status > 299) {
      std::string why = "judge " + reply.url + " answered with status " + std::to_string(status) +
                        ": '" + servers_.shown(reply.http.body) + "'";
      if (!judges_request(status)) {
        co_return core::fail(ErrorCode::kData, why,
                             "check --reward.judge, --reward.judge_model and --reward.judge_key");
      }
      out->cause = std::move(why);
      co_return std::string();
    }
    TROUPE_CO_TRY_ASSIGN(text, read_chat_reply(reply.http.body));
    co_return text.value_or("");
  }

  // What a batch without all its answers has is not asked for again.
  void keep(const std::vector<RewardGroup>& groups,
            const std::vector<JudgeQuestion>& questions,
            std::vector<JudgeOutcome>& outcomes) {
    constexpr std::size_t kKept_max = 4096;
    for (std::size_t i = 0; i < questions.size() && kept_.size() < kKept_max; ++i) {
      if (!outcomes[i].value) continue;
      kept_.insert_or_assign(
          options_.rubric.ask(texts_of(questions[i], groups[questions[i].group])),
          std::move(outcomes[i]));
    }
  }

  const JudgeOptions options_;
  HttpServers servers_;
  RoleContext context_;
  BusyCalls busy_;
  CallGate gate_{limits::kRewardRequests_max};  // questions whose texts are made
  std::map<std::string, JudgeOutcome> kept_;    // by question
  std::uint64_t retries_ = 0, unparsed_ = 0;
};

}  // namespace

core::Result<std::unique_ptr<RewardCalls>> make_judge_reward(JudgeOptions options) {
  if (options.judge.empty()) return core::fail(ErrorCode::kConfig, "no URL of a judge is given");
  std::vector<std::string> urls;
  for (const std::string& base : options.judge) {
    TROUPE_TRY(net::parse_url(base));
    const std::string url = chat_url(base);
    if (std::ranges::count(urls, url) > 0) {
      return core::fail(ErrorCode::kConfig, "the judge " + base + " is given twice",
                        "name each once (--reward.judge)");
    }
    urls.push_back(url);
  }
  return {std::make_unique<JudgeReward>(std::move(options), std::move(urls))};
}

}  // namespace troupe::actors::reward
