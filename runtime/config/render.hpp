// Text for people that is made from the table of keys: the resolved YAML, help pages, the reference
// page, and the difference between two configurations. Pure functions.
#pragma once

#include "runtime/config/builder.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// Every key with its value, as YAML that reads back to the same values; keys that were set carry a
// comment that says where.
std::string resolved_yaml(const TrainConfig& config, const Origins& origins);

// One line a section: `  rollout     batch_size n_samples_per_prompt ...`, wrapped at `columns`.
// Only the keys that one of `methods` reads.
std::string overview(std::size_t columns, Methods methods = kAllMethods);

// Flags of one section with type, range, unit, default and help; of one method the default is its
// own. Empty for a section that is unknown or that none of `methods` reads.
std::string section_help(const Table& table,
                         std::string_view section,
                         std::size_t columns,
                         Methods methods = kAllMethods);

// docs/configuration.md.
std::string reference_page(const Table& table);

struct Difference {
  std::string_view name;
  std::string before;
  std::string after;
};

// Keys whose values differ.
std::vector<Difference> differences(const TrainConfig& before, const TrainConfig& after);

// True for keys that a resumed run may change: they do not alter what is computed in an update.
bool may_change(std::string_view name);

}  // namespace troupe::config
