// Posts a batch and reads its scores.
#include "actors/reward/http_reward.hpp"

#include "actors/reward/reward_json.hpp"
#include "runtime/net/http_client.hpp"
#include "runtime/net/url.hpp"

namespace troupe::actors {
namespace {

using core::ErrorCode;

constexpr std::size_t kShown_bytes_max = 200;

class HttpReward final : public RewardSource {
 public:
  HttpReward(std::string url, std::string host) : url_(std::move(url)), host_(std::move(host)) {}

  std::string name() const override { return host_; }

  core::Result<std::vector<RewardScore>> score(const std::vector<RewardItem>& items,
                                               core::Duration deadline) override {
    const std::string where = "reward server " + url_;
    auto reply = net::http_post_json_blocking(url_, reward_request(items), deadline,
                                              {{kMissingHeader, "null"}});
    if (!reply) return core::fail(reply.error().code, "reward server " + reply.error().message);
    if (reply->status < 200 || reply->status > 299) {
      return core::fail(code_of(reply->status), where + " answered with status " +
                                                    std::to_string(reply->status) + ": '" +
                                                    printed(reply->body) + "'");
    }
    auto scores = read_reward_reply(reply->body, items.size());
    if (!scores) return core::fail(scores.error().within(where));
    return scores;
  }

 private:
  // Which failures are worth another try is the role's knowledge; it goes by these codes.
  static ErrorCode code_of(int status) {
    if (status == 504) return ErrorCode::kDeadline;
    const bool may_pass = status >= 500 || status == 408 || status == 429;
    return may_pass ? ErrorCode::kPeerLost : ErrorCode::kData;
  }

  static std::string printed(const std::string& body) {
    std::string text = body.substr(0, kShown_bytes_max);
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
    }
    return text;
  }

  const std::string url_;
  const std::string host_;
};

}  // namespace

core::Result<std::unique_ptr<RewardSource>> make_http_reward(std::string url) {
  TROUPE_TRY_ASSIGN(parsed, net::parse_url(url));
  return {std::make_unique<HttpReward>(std::move(url), std::move(parsed.host))};
}

}  // namespace troupe::actors
