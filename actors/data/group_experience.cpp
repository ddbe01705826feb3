#include "actors/data/group_experience.hpp"

#include "runtime/core/group_bytes.hpp"
#include "runtime/experience/episodes.hpp"
#include "runtime/experience/row.hpp"
#include "runtime/experience/sample_fields.hpp"

#include <algorithm>

namespace troupe::actors::data {

core::Result<void> check_delivery(const PutGroup& request) {
  const auto named = [&](const core::Result<void>& found) -> core::Result<void> {
    if (found) return {};
    return core::fail(found.error().within(name_of(request.ticket)));
  };
  for (const experience::Trajectory& sample : request.samples)
    TROUPE_TRY(named(experience::check_delivered(sample)));
  return named(experience::check_episodes(request.samples));
}

std::uint64_t longest_row(const std::vector<experience::Trajectory>& samples) {
  std::uint64_t longest = 0;
  for (const experience::Trajectory& sample : samples)
    longest = std::max<std::uint64_t>(longest, experience::row_length(sample));
  return longest;
}

const std::vector<std::int32_t>& prompt_tokens(const BookGroup& group, const Prompt& prompt) {
  return group.begins_with.empty() ? prompt.tokens : group.begins_with;
}

experience::Group experience_of(const BookGroup& group, const Prompt& prompt) {
  experience::Group result{group.ticket, prompt_tokens(group, prompt), {}};
  result.samples.reserve(group.samples.size());
  for (const experience::Trajectory& sample : group.samples)
    result.samples.push_back(experience::learned_part(sample));
  return result;
}

std::uint64_t bytes_of(const experience::Group& group) {
  std::uint64_t tokens = 0, turns = 0;
  for (const experience::Trajectory& sample : group.samples) {
    tokens += sample.tokens.size();
    turns += experience::turn_bytes(sample);
  }
  const bool taught = !group.samples.empty() && !group.samples.front().teacher.empty();
  return core::group_bytes(group.prompt.size(), group.samples.size(), tokens, 0, taught ? 3 : 2) +
         turns;
}

}  // namespace troupe::actors::data
