#include "actors/reward/http_reward.hpp"

#include "actors/reward/reward_json.hpp"
#include "runtime/net/http_client.hpp"
#include "runtime/net/url.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace troupe::actors {
namespace {

using core::ErrorCode;

constexpr std::uint64_t kSilence_s_max = 60;  // most that one Retry-After may ask for

class HttpReward final : public RewardSource {
 public:
  HttpReward(std::string url, std::string host) : url_(std::move(url)), host_(std::move(host)) {}

  std::string name() const override { return host_; }

  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration deadline) override {
    const std::string where = "reward server " + url_;
    TROUPE_TRY(respect_silence());
    auto reply = net::http_post_json_blocking(url_, reward_request(groups), deadline,
                                              {{kMissingHeader, "null"}});
    if (!reply) return core::fail(no_reply(reply.error()));
    if (reply->status < 200 || reply->status > 299) {
      keep_silence(*reply);
      return core::fail(code_of(reply->status), where + " answered with status " +
                                                    std::to_string(reply->status) + ": '" +
                                                    printed(reply->body) + "'");
    }
    auto scores = read_reward_reply(reply->body, samples_in(groups));
    if (!scores) return core::fail(scores.error().within(where));
    return scores;
  }

 private:
  // kPeerLost for a status that means the server is away; kData when it has judged the samples.
  static ErrorCode code_of(int status) {
    const bool away = status >= 500 || status == 408 || status == 429;
    return away ? ErrorCode::kPeerLost : ErrorCode::kData;
  }

  static core::Error no_reply(const core::Error& error) {
    const bool late = error.code == ErrorCode::kDeadline;
    return {late ? ErrorCode::kPeerLost : error.code,
            "reward server " + error.message + (late ? " (--reward.deadline_s)" : "")};
  }

  // Obeys a Retry-After in seconds: does not ask the server before then. Ignores other values.
  void keep_silence(const net::HttpReply& reply) {
    const std::string_view text = net::find_header(reply.headers, "retry-after");
    std::uint64_t seconds = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return;
    silent_until_ = clock_.now() + std::chrono::seconds(std::min(seconds, kSilence_s_max));
    silence_cause_ = "reward server " + url_ + " answered with status " +
                     std::to_string(reply.status) + " and asked not to be called for " +
                     std::string(text) + " s";
  }

  core::Result<void> respect_silence() const {
    if (clock_.now() >= silent_until_) return {};
    return core::fail(ErrorCode::kPeerLost, silence_cause_);
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
  const core::SteadyClock clock_;
  core::TimePoint silent_until_{};
  std::string silence_cause_;
};

}  // namespace

core::Result<std::unique_ptr<RewardSource>> make_http_reward(std::string url) {
  TROUPE_TRY_ASSIGN(parsed, net::parse_url(url));
  return {std::make_unique<HttpReward>(std::move(url), std::move(parsed.host))};
}

}  // namespace troupe::actors
