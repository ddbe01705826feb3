// A teacher behind a URL: the role that gives log-probs of sampled tokens as ReferenceRole does,
// but asks a server with OpenAI's completions (`troupe serve`, vLLM) for the log-probs of a prompt,
// which is prompt and response. Runs on its strand. Bounds: kRewardRequests_max requests in flight,
// one a sample; the deadline of a request. A server that refuses, is silent or answers 5xx or 429
// is away (kPeerLost). Any other answer that is not one log-prob at most 0 for every token, of the
// tokens that were asked for, is kData.
#pragma once

#include "actors/protocol/limits.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/role_shell.hpp"
#include "actors/reward/http_servers.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors::reference {

// The spelling of a token as servers show it; "" when nothing can be said of it (a special token, a
// part of a character).
using TokenSpelling = std::function<std::string(std::int32_t token)>;

struct TeacherServerOptions {
  std::string url;  // of the API: ".../v1", or with its /completions
  core::Duration deadline = actors::limits::kRoundDeadline;
  TokenSpelling spelling;  // of the policy's tokenizer; null: tokens are not compared
};

// The body of a request.
std::string teacher_request(std::span<const std::int32_t> prompt,
                            std::span<const std::int32_t> response);

// The log-probs of the response in a reply. Error kData: what is wrong with it, without the server.
core::Result<std::vector<float>> read_teacher_reply(const std::string& body,
                                                    std::size_t prompt_tokens,
                                                    std::span<const std::int32_t> response,
                                                    const TokenSpelling& spelling);

// The log-probs at these places of the response. Error kData: a place that it does not have.
core::Result<std::vector<float>> at_targets(const std::vector<float>& all,
                                            const std::vector<std::uint32_t>& targets);

class TeacherServer {
 public:
  TeacherServer(RoleContext context, TeacherServerOptions options);

  // A repeated request is asked for again. Temperature 1 only.
  async::task<core::Result<Logprobs>> on(ScoreLogprobs request);

  // Counts for `status`.
  wire::Amounts amounts() const { return servers_.amounts(); }

 private:
  static async::task<core::Result<void>> ask_for(TeacherServer* self,
                                                 std::vector<std::int32_t> prompt,
                                                 std::vector<std::int32_t> response,
                                                 std::vector<float>* out);

  RoleContext context_;
  const TeacherServerOptions options_;
  reward::HttpServers servers_;
};

}  // namespace troupe::actors::reference
