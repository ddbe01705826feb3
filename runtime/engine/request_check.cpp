#include "runtime/engine/request_check.hpp"

#include "runtime/engine/engine_settings.hpp"
#include "runtime/engine/group.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::engine {
namespace {

using std::to_string;

core::Failure invalid(std::string message, std::string_view advice = {}) {
  return fail(ErrorCode::kInvalidArgument, std::move(message), advice);
}

core::Result<void> check_numbers(const SamplingParams& p) {
  const bool greedy = p.temperature == 0.0f;
  if (!greedy && !(p.temperature >= kTemperature_min && p.temperature <= kTemperature_max)) {
    return invalid("temperature is " + to_string(p.temperature),
                   "it must be 0 (greedy) or between 0.001 and 1000");
  }
  if (p.top_k < 0) return invalid("top_k is " + to_string(p.top_k), "0 turns it off");
  if (!(p.top_p > 0.0f && p.top_p <= 1.0f)) {
    return invalid("top_p is " + to_string(p.top_p), "it must be above 0 and at most 1 (off)");
  }
  if (!(p.min_p >= 0.0f && p.min_p <= 1.0f)) {
    return invalid("min_p is " + to_string(p.min_p), "it must be between 0 (off) and 1");
  }
  if (p.max_new_tokens < 1) {
    return invalid("max_new_tokens is " + to_string(p.max_new_tokens), "at least 1 is needed");
  }
  if (p.min_new_tokens < 0 || p.min_new_tokens > p.max_new_tokens) {
    return invalid("min_new_tokens is " + to_string(p.min_new_tokens),
                   "it must be between 0 and max_new_tokens, " + to_string(p.max_new_tokens));
  }
  return {};
}

bool within(float value, float low, float high) {
  return value >= low && value <= high;  // false for NaN
}

core::Result<void> check_penalties(const SamplingParams& p, const RequestBounds& bounds) {
  if (!within(p.repetition_penalty, kRepetition_min, kRepetition_max)) {
    return invalid("repetition_penalty is " + to_string(p.repetition_penalty),
                   "it must be between 0.01 and 100, and 1 turns it off");
  }
  if (!within(p.presence_penalty, -kPenalty_max, kPenalty_max)) {
    return invalid("presence_penalty is " + to_string(p.presence_penalty),
                   "it must be between -2 and 2, and 0 turns it off");
  }
  if (!within(p.frequency_penalty, -kPenalty_max, kPenalty_max)) {
    return invalid("frequency_penalty is " + to_string(p.frequency_penalty),
                   "it must be between -2 and 2, and 0 turns it off");
  }
  if (p.logit_bias.size() > kLogitBias_max) {
    return invalid("logit_bias names " + to_string(p.logit_bias.size()) + " tokens",
                   "at most " + to_string(kLogitBias_max) + " are taken");
  }
  std::int32_t before = -1;
  for (const LogitBias& entry : p.logit_bias) {
    if (entry.token < 0 || entry.token >= bounds.vocab) {
      return invalid("logit_bias: token " + to_string(entry.token) +
                     " is outside the vocabulary of " + to_string(bounds.vocab));
    }
    if (entry.token <= before) {
      return invalid(
          "logit_bias: token " + to_string(entry.token) + " stands after " + to_string(before),
          "ids must ascend, each once");
    }
    if (!within(entry.bias, -kLogitBias_size_max, kLogitBias_size_max)) {
      return invalid("logit_bias: the bias of token " + to_string(entry.token) + " is " +
                         to_string(entry.bias),
                     "it must be between -1e6 and 1e6");
    }
    before = entry.token;
  }
  const std::int64_t most = std::min<std::int64_t>(kTopLogprobs_max, bounds.vocab);
  if (p.top_logprobs < 0 || p.top_logprobs > most) {
    return invalid("top_logprobs is " + to_string(p.top_logprobs),
                   "it must be between 0 and " + to_string(most));
  }
  return {};
}

core::Result<void> check_stops(const SamplingParams& p, const RequestBounds& bounds) {
  if (p.stop_tokens.size() > kStopTokens_max) {
    return invalid(to_string(p.stop_tokens.size()) + " stop tokens",
                   "at most " + to_string(kStopTokens_max) + " are taken");
  }
  for (const std::int32_t token : p.stop_tokens) {
    if (token < 0 || token >= bounds.vocab) {
      return invalid("stop token " + to_string(token) + " is outside the vocabulary of " +
                     to_string(bounds.vocab));
    }
  }
  if (p.min_new_tokens > 0 &&
      static_cast<std::int64_t>(p.stop_tokens.size() + bounds.end_tokens) >= bounds.vocab) {
    return invalid(
        "min_new_tokens with as many end tokens as the vocabulary leaves nothing to draw");
  }
  if (p.stop_strings.size() > kStopStrings_max) {
    return invalid(to_string(p.stop_strings.size()) + " stop strings",
                   "at most " + to_string(kStopStrings_max) + " are taken");
  }
  for (const std::string& text : p.stop_strings) {
    if (text.empty() || text.size() > kStopString_bytes_max) {
      return invalid("a stop string of " + to_string(text.size()) + " bytes",
                     "1 to " + to_string(kStopString_bytes_max) + " are taken");
    }
  }
  if (!p.stop_strings.empty() && !bounds.has_text) {
    return invalid("stop strings need a tokenizer and this engine was made without one");
  }
  return {};
}

core::Result<void> check_size(const GroupRequest& request, const RequestBounds& bounds) {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t total = prompt + request.sampling.max_new_tokens;
  if (total > bounds.context) {
    return fail(ErrorCode::kData,
                "a prompt of " + to_string(prompt) + " tokens and max_new_tokens " +
                    to_string(request.sampling.max_new_tokens) + " exceed the context of " +
                    to_string(bounds.context),
                "shorten the prompt or lower max_new_tokens");
  }
  if (request.samples > bounds.sequences_max) {
    return fail(ErrorCode::kResources,
                to_string(request.samples) + " samples can never run together: sequences_max is " +
                    to_string(bounds.sequences_max),
                "raise it");
  }
  const std::int64_t wanted =
      blocks_wanted(prompt, request.samples, request.sampling.max_new_tokens, bounds.window);
  if (wanted > bounds.blocks) {
    return fail(ErrorCode::kResources,
                "a group of " + to_string(request.samples) + " samples, a prompt of " +
                    to_string(prompt) + " tokens and up to " +
                    to_string(request.sampling.max_new_tokens) + " new ones need " +
                    to_string(wanted) + " blocks of 16 tokens for keys and values, and there are " +
                    to_string(bounds.blocks),
                kMoreCache);
  }
  return {};
}

core::Result<void> check_sampling(const SamplingParams& params, const RequestBounds& bounds) {
  TROUPE_TRY(check_numbers(params));
  TROUPE_TRY(check_penalties(params, bounds));
  if (params.routed_experts && !bounds.has_experts) {
    return invalid("routed_experts is wanted, and this model has no experts");
  }
  return check_stops(params, bounds);
}

}  // namespace

core::Result<void> check_request(const GroupRequest& request, const RequestBounds& bounds) {
  const std::string where = "group " + to_string(request.id.value);
  if (request.prompt.empty()) {
    return invalid(where + ": the prompt is empty", "at least one token is needed");
  }
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    const std::int32_t token = request.prompt[i];
    if (token < 0 || token >= bounds.vocab) {
      return invalid(where + ": prompt token " + to_string(token) + " at position " + to_string(i) +
                     " is outside the vocabulary of " + to_string(bounds.vocab));
    }
  }
  if (request.samples < 1) {
    return invalid(where + ": " + to_string(request.samples) + " samples", "at least 1 is needed");
  }
  if (const auto ok = check_sampling(request.sampling, bounds); !ok) {
    return fail(ok.error().within(where));
  }
  if (const auto ok = check_size(request, bounds); !ok) return fail(ok.error().within(where));
  return {};
}

}  // namespace troupe::engine
