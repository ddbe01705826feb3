// Groups for the tests of the scheduler: as the engine makes them, with a seed for each sample.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/engine/group.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace troupe::engine {

inline std::unique_ptr<Group> make_group(std::uint64_t id,
                                         std::vector<std::int32_t> prompt,
                                         std::int32_t samples,
                                         std::int32_t max_new) {
  auto group = std::make_unique<Group>();
  group->request.id.value = id;
  group->request.prompt = std::move(prompt);
  group->request.samples = samples;
  group->request.sampling.max_new_tokens = max_new;
  group->samples.resize(static_cast<std::size_t>(samples));
  for (std::int32_t i = 0; i < samples; ++i) {
    group->at(i).out.index = i;
    group->at(i).seed = core::derive_seed(id, static_cast<std::uint64_t>(i));
  }
  return group;
}

// A prompt of tokens that no other group has.
inline std::unique_ptr<Group> make_group(std::uint64_t id,
                                         std::int32_t prompt,
                                         std::int32_t samples,
                                         std::int32_t max_new) {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < prompt; ++i)
    tokens.push_back(static_cast<std::int32_t>(id) * 1000 + i);
  return make_group(id, std::move(tokens), samples, max_new);
}

}  // namespace troupe::engine
