#include "actors/protocol/call_values.hpp"

#include <algorithm>

namespace troupe::actors {

CallSampling call_sampling(const SamplingSpec& spec) {
  CallSampling out;
  out.temperature = spec.temperature;
  out.top_p = spec.top_p;
  out.min_p = spec.min_p;
  out.top_k = spec.top_k;
  out.max_new_tokens = spec.max_new_tokens;
  out.stop_strings = spec.stop;
  out.kept_mass = engine_sampling(out).truncates();
  return out;
}

CallSampling policy_sampling(const SamplingSpec& spec, const engine::SamplingParams& given) {
  CallSampling out = call_sampling(spec);
  out.max_new_tokens = std::min(given.max_new_tokens, out.max_new_tokens);
  out.min_new_tokens = std::min(given.min_new_tokens, out.max_new_tokens);
  out.ignore_eos = given.ignore_eos;
  out.stop_tokens = given.stop_tokens;
  out.stop_strings.insert(out.stop_strings.begin(), given.stop_strings.begin(),
                          given.stop_strings.end());
  out.raw_logprobs = given.raw_logprobs;
  out.top_logprobs = given.top_logprobs;
  return out;
}

engine::SamplingParams engine_sampling(const CallSampling& sampling) {
  engine::SamplingParams out;
  out.temperature = sampling.temperature;
  out.top_p = sampling.top_p;
  out.min_p = sampling.min_p;
  out.top_k = sampling.top_k;
  out.max_new_tokens = sampling.max_new_tokens;
  out.min_new_tokens = sampling.min_new_tokens;
  out.ignore_eos = sampling.ignore_eos;
  out.stop_tokens = sampling.stop_tokens;
  out.stop_strings = sampling.stop_strings;
  out.repetition_penalty = sampling.repetition_penalty;
  out.presence_penalty = sampling.presence_penalty;
  out.frequency_penalty = sampling.frequency_penalty;
  out.logit_bias = sampling.logit_bias;
  out.raw_logprobs = sampling.raw_logprobs;
  out.top_logprobs = sampling.top_logprobs;
  out.kept_mass = sampling.kept_mass;
  return out;
}

Completed completed_of(engine::Sample sample) {
  Completed out;
  out.tokens = std::move(sample.tokens);
  out.behaviour = std::move(sample.logprobs);
  out.versions = experience::VersionRuns(sample.versions);
  out.finish = sample.finish;
  out.raw_logprobs = std::move(sample.raw_logprobs);
  for (const engine::TokenLogprob& top : sample.top_logprobs) {
    out.top_tokens.push_back(top.token);
    out.top_logprobs.push_back(top.logprob);
  }
  out.facts = std::move(sample.facts);
  out.guide_error = std::move(sample.guide_error);
  return out;
}

engine::Sample sample_of(Completed completed) {
  engine::Sample out;
  out.tokens = std::move(completed.tokens);
  out.logprobs = std::move(completed.behaviour);
  out.versions.assign(completed.versions.begin(), completed.versions.end());
  out.raw_logprobs = std::move(completed.raw_logprobs);
  for (std::size_t i = 0; i < completed.top_tokens.size(); ++i)
    out.top_logprobs.push_back({completed.top_tokens[i], completed.top_logprobs[i]});
  out.facts = std::move(completed.facts);
  out.guide_error = std::move(completed.guide_error);
  out.finish = completed.finish;
  return out;
}

}  // namespace troupe::actors
