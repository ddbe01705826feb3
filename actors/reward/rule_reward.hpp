// Verifiable rewards by rule: 1 for a right response, 0 for a wrong one.
//   exact        the response's first line, trimmed, equals the label, trimmed
//   last_number  the last number in the response equals the label as a number
//   regex        the pattern (ECMAScript) is found in the response (in its last 8 KiB); with a
//                capture group and a label, the first group must also equal the label
// A sample without the label that exact or last_number needs gets no score. Pure; any thread.
#pragma once

#include "actors/reward/reward_source.hpp"

namespace troupe::actors::reward {

enum class RuleKind { kExact, kLastNumber, kRegex };

// The kind with that name ("exact", "last_number", "regex"); none for any other name.
std::optional<RuleKind> rule_kind(const std::string& name);

// `pattern` is used by kRegex alone. Errors: kConfig for a pattern that is empty or malformed.
core::Result<std::unique_ptr<RewardSource>> make_rule_reward(RuleKind kind,
                                                             const std::string& pattern);

// The last number of a text ("1,234.5", "-3", ".5"); nothing when there is none.
std::optional<double> last_number(const std::string& text);

}  // namespace troupe::actors::reward
