// A plan as text for people and as JSON for programs, and the sentences that both share: sizes,
// devices, the verdict. Pure functions.
#pragma once

#include "runtime/plan/plan.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

// "17.6", "0.131": in units of 1e9 bytes, three digits.
std::string gigabytes(std::int64_t bytes);
// "1,024".
std::string grouped(std::int64_t count);
// "node 0 to node 3, 32 devices", "node 4 device 0", "the host".
std::string devices_words(const std::vector<std::int64_t>& devices, const plan::Cluster& cluster);

// One sentence for each shortfall: what does not fit where, the largest kind, and the settings that
// mend it; one sentence when all fits, or when the memory is not known.
std::vector<std::string> verdict_words(const plan::RunFacts& facts, const plan::Plan& plan);

// What an update or a step is, in sentences.
std::vector<std::string> batch_words(const plan::Batch& batch);
// How many samples an engine runs at once.
std::vector<std::string> engine_words(const plan::RunFacts& facts);
// What a push of weights moves.
std::vector<std::string> push_words(const plan::Push& push);

// Several lines, each ended.
std::string plan_text(const plan::RunFacts& facts, const plan::Plan& plan);

// One JSON object on one line; all sizes in bytes (docs/plan.md lists its members).
std::string plan_json(const plan::RunFacts& facts, const plan::Plan& plan);

}  // namespace troupe::app
