#include "actors/reward/http_reward.hpp"

#include "actors/reward/busy_calls.hpp"
#include "actors/reward/http_servers.hpp"
#include "actors/reward/reward_json.hpp"
#include "runtime/net/url.hpp"

#include <algorithm>

namespace troupe::actors::reward {
namespace {

bool is_answer(int status) {
  return status >= 200 && status <= 299;
}

class HttpReward final : public RewardCalls {
 public:
  HttpReward(std::vector<std::string> urls, std::string name, RewardFormat format)
      : servers_(std::move(urls), {.headers = {{kMissingHeader, "null"}}}),
        name_(std::move(name)),
        format_(format) {}

  std::string name() const override { return name_; }
  wire::Amounts amounts() const override { return servers_.amounts(); }

  void begin(const RoleContext& context) override {
    context_ = context;
    servers_.begin(context);
  }

  async::task<Answer> score(std::vector<RewardGroup> groups, core::Duration deadline) override {
    const BusyCalls::Guard guard(busy_, context_.activity);
    if (format_ == RewardFormat::kSample) {
      co_return co_await score_samples(std::move(groups), deadline);
    }
    const std::size_t count = samples_in(groups);
    co_return co_await ask(reward_request(groups), count, deadline);
  }

 private:
  async::task<Answer> ask(std::string body, std::size_t count, core::Duration deadline) {
    TROUPE_CO_TRY_ASSIGN(reply, co_await servers_.post(std::move(body), deadline));
    const std::string where = "reward server " + reply.url;
    if (!is_answer(reply.http.status)) {
      co_return core::fail(ErrorCode::kData, where + " answered with status " +
                                                 std::to_string(reply.http.status) + ": '" +
                                                 printed(reply.http.body) + "'");
    }
    auto scores = format_ == RewardFormat::kSample ? read_sample_reply(reply.http.body)
                                                   : read_reward_reply(reply.http.body, count);
    if (!scores) co_return core::fail(scores.error().within(where));
    co_return scores;
  }

  // One request a sample. A sample that is refused has no score; without an answer to all, the
  // batch has none.
  async::task<Answer> score_samples(std::vector<RewardGroup> groups, core::Duration deadline) {
    std::vector<Answer> answers(samples_in(groups), core::fail(ErrorCode::kInternal, ""));
    std::vector<async::task<core::Result<void>>> asking;
    for (const RewardGroup& group : groups) {
      for (const RewardSample& sample : group.samples)
        asking.push_back(
            store(this, sample_request(group, sample), deadline, &answers[asking.size()]));
    }
    TROUPE_CO_TRY(co_await async::all(std::move(asking)));
    std::vector<RewardScore> scores;
    for (Answer& answer : answers) {
      if (answer) {
        scores.push_back(std::move(answer->front()));
      } else if (answer.error().code == ErrorCode::kData) {
        scores.push_back({std::nullopt, answer.error().message});
      } else {
        co_return answer.failure();
      }
    }
    co_return scores;
  }

  static async::task<core::Result<void>> store(HttpReward* self,
                                               std::string body,
                                               core::Duration deadline,
                                               Answer* out) {
    auto answer = co_await self->ask(std::move(body), 1, deadline);
    *out = std::move(answer);
    co_return core::Result<void>();
  }

  HttpServers servers_;
  const std::string name_;
  const RewardFormat format_;
  RoleContext context_;
  BusyCalls busy_;
};

}  // namespace

core::Result<std::unique_ptr<RewardCalls>> make_http_reward(std::vector<std::string> urls,
                                                            RewardFormat format) {
  if (urls.empty()) return core::fail(ErrorCode::kConfig, "no URL of a reward server is given");
  std::string name;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    TROUPE_TRY_ASSIGN(parsed, net::parse_url(urls[i]));
    if (i == 0) name = std::move(parsed.host);
    if (std::count(urls.begin(), urls.end(), urls[i]) > 1) {
      return core::fail(ErrorCode::kConfig, "the reward server " + urls[i] + " is given twice",
                        "name each once (--reward.http)");
    }
  }
  return {std::make_unique<HttpReward>(std::move(urls), std::move(name), format)};
}

}  // namespace troupe::actors::reward
