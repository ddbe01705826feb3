#include "runtime/engine/sample_writer.hpp"

#include "runtime/core/rng.hpp"

#include <algorithm>

namespace troupe::engine {

core::Result<std::unique_ptr<Group>> SampleWriter::group_of(GroupRequest request) const {
  auto group = std::make_unique<Group>();
  group->end_tokens = request.sampling.stop_tokens;
  if (!request.sampling.ignore_eos) {
    group->end_tokens.insert(group->end_tokens.end(), eos_.begin(), eos_.end());
  }
  std::sort(group->end_tokens.begin(), group->end_tokens.end());
  if (request.sampling.repetition_penalty != 1.0f) {
    std::vector<std::int32_t>& tokens = group->prompt_tokens;
    tokens = request.prompt;
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  }
  group->samples.resize(static_cast<std::size_t>(request.samples));
  for (std::int32_t i = 0; i < request.samples; ++i) {
    SampleState& sample = group->at(i);
    sample.out.group = request.id;
    sample.out.index = i;
    sample.seed = core::derive_seed(request.seed, static_cast<std::uint64_t>(i));
  }
  group->request = std::move(request);
  if (group->request.guide != nullptr) {
    for (SampleState& sample : group->samples)
      TROUPE_TRY(add_guide(*group, sample));
  }
  return group;
}

EndTokens SampleWriter::ends_of(const Group& group) const {
  EndTokens ends{.all = group.end_tokens};
  if (!group.request.sampling.ignore_eos) ends.model = eos_;
  return ends;
}

core::Result<void> SampleWriter::add_guide(const Group& group, SampleState& sample) const {
  TROUPE_TRY_ASSIGN(guide, group.request.guide->clone());
  sample.guide = std::make_shared<SampleGuide>(std::move(guide));
  const bool early = group.request.sampling.min_new_tokens > 0;
  if (sample.guide->look(ends_of(group), early) == SampleGuide::Next::kDraw) return {};
  const std::string& why = sample.guide->why();
  return core::fail(core::ErrorCode::kInvalidArgument,
                    "group " + std::to_string(group.request.id.value) +
                        ": the guide allows no token: " +
                        (why.empty() ? "its only text is empty, and no token ends it" : why));
}

bool SampleWriter::guide_ends(const Group& group, SampleState& sample) const {
  const std::vector<std::int32_t>& tokens = sample.out.tokens;
  const bool early =
      static_cast<std::int32_t>(tokens.size()) < group.request.sampling.min_new_tokens;
  switch (sample.guide->take(tokens.back(), ends_of(group), early)) {
    case SampleGuide::Next::kDraw:
      return false;
    case SampleGuide::Next::kComplete:
      sample.out.finish = FinishReason::kStop;
      return true;
    case SampleGuide::Next::kNone:
      break;
  }
  sample.out.finish = FinishReason::kAborted;
  sample.out.guide_error = sample.guide->why();
  return true;
}

// Stores the log-prob of a prompt token and the most likely tokens at its position. If the prompt
// is computed again, this overwrites the earlier values.
void SampleWriter::write_score(const DrawJob& job, const Draw& draw) const {
  Sample& out = job.group->at(job.sample).out;
  const auto at = static_cast<std::size_t>(job.position - 1);
  if (out.prompt_logprobs.size() <= at) out.prompt_logprobs.resize(at + 1);
  out.prompt_logprobs[at] = draw.logprob;
  const std::size_t end = (at + 1) * draw.top.size();
  if (out.prompt_top_logprobs.size() < end) out.prompt_top_logprobs.resize(end);
  std::copy(draw.top.begin(), draw.top.end(),
            out.prompt_top_logprobs.begin() + static_cast<std::ptrdiff_t>(at * draw.top.size()));
}

bool SampleWriter::write(const DrawJob& job, const Draw& draw, core::Version version) const {
  if (job.target >= 0) {
    write_score(job, draw);
    return false;
  }
  Group& group = *job.group;
  SampleState& state = group.at(job.sample);
  Sample& out = state.out;
  const SamplingParams& params = group.request.sampling;
  if (out.tokens.empty()) {
    const auto most = static_cast<std::size_t>(params.max_new_tokens);
    out.tokens.reserve(most);
    out.logprobs.reserve(most);
    out.versions.reserve(most);
    if (params.raw_logprobs) out.raw_logprobs.reserve(most);
    if (params.entropies) out.entropies.reserve(most);
    if (params.kept_mass) out.facts.log_kept_mass.reserve(most);
    out.routed_experts.reserve(most * draw.routed.size());
    out.top_logprobs.reserve(most * static_cast<std::size_t>(params.top_logprobs));
    if (penalises(params)) state.counts.reserve(params.max_new_tokens);
  }
  out.tokens.push_back(draw.token);
  out.logprobs.push_back(draw.logprob);
  out.versions.push_back(version);
  if (params.raw_logprobs) out.raw_logprobs.push_back(draw.raw_logprob);
  if (params.entropies) out.entropies.push_back(draw.entropy);
  if (params.kept_mass) out.facts.log_kept_mass.push_back(draw.log_kept_mass);
  out.top_logprobs.insert(out.top_logprobs.end(), draw.top.begin(), draw.top.end());
  out.routed_experts.insert(out.routed_experts.end(), draw.routed.begin(), draw.routed.end());
  if (penalises(params)) state.counts.add(draw.token);
  return ends(group, out) || (state.guide != nullptr && guide_ends(group, state));
}

// True, and sets `finish`, if the newest token ends the sample.
bool SampleWriter::ends(const Group& group, Sample& sample) const {
  const SamplingParams& params = group.request.sampling;
  const std::vector<std::int32_t>& tokens = sample.tokens;
  const auto count = static_cast<std::int32_t>(tokens.size());
  const auto holds = [&](const std::vector<std::int32_t>& ids) {
    return std::binary_search(ids.begin(), ids.end(), tokens.back());
  };
  if (!params.ignore_eos && holds(eos_)) {
    sample.finish = FinishReason::kEos;
  } else if (holds(group.end_tokens) ||
             (!params.stop_strings.empty() && count >= params.min_new_tokens &&
              completes_stop(*text_, tokens, params.stop_strings))) {
    sample.finish = FinishReason::kStop;
  } else if (count == params.max_new_tokens) {
    sample.finish = FinishReason::kLength;
  } else {
    return false;
  }
  return true;
}

}  // namespace troupe::engine
