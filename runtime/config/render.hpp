// Text for users, generated from the table of keys: the resolved YAML, help pages, the reference
// page, and the differences between two configurations. Pure functions.
#pragma once

#include "runtime/config/builder.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// Every key that the configuration's method reads, with its value, as YAML that reads back to the
// same values. For keys in `origins`, a YAML comment says where they were set.
std::string resolved_yaml(const TrainConfig& config, const Origins& origins);

// One line per section: its name, what it is about and how many of its keys any of `methods` reads.
std::string groups(const Table& table, Methods methods = kAllMethods);

// The flags of these keys with type, range, unit, default and help, a line each where that is
// short. Keys that `methods` do not read are left out.
std::string keys_help(const Table& table,
                      std::span<const std::string_view> names,
                      std::size_t columns,
                      Methods methods);

// The flags of one section with type, range, unit, default and help. If `methods` is a single
// method, the defaults are that method's. Empty for an unknown section or one that none of
// `methods` reads.
std::string section_help(const Table& table,
                         std::string_view section,
                         std::size_t columns,
                         Methods methods = kAllMethods);

// The contents of docs/configuration.md.
std::string reference_page(const Table& table);

struct Difference {
  std::string_view name;
  std::string before;
  std::string after;
};

// The keys whose values differ.
std::vector<Difference> differences(const TrainConfig& before, const TrainConfig& after);

// True for keys that a resumed run may change (`free` in keys.def).
bool may_change(std::string_view name);

}  // namespace troupe::config
