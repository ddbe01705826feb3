// How rows of the configuration table are bound to members of TrainConfig: the key is the member's
// path. For the sources that hold rows (config_rows*.cpp), on any thread.
#pragma once

#include "runtime/config/config_table.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace troupe::config {

template <class Access>
ConfigRow bind(std::string_view name, Access access) {
  ConfigRow row;
  row.name = name;
  using Member = decltype(access(std::declval<TrainConfig&>()));
  Member (*function)(TrainConfig&) = access;
  row.field = function;
  return row;
}

// The key is the member's path.
#define TROUPE_KEY(path) bind(#path, [](TrainConfig& c) -> decltype((c.path)) { return c.path; })

// Rows of what a run learns from, and how (config_rows_learn.cpp).
void algo_rows(std::vector<ConfigRow>& rows);
void data_rows(std::vector<ConfigRow>& rows);
void reward_and_eval_rows(std::vector<ConfigRow>& rows);
void preference_rows(std::vector<ConfigRow>& rows);

}  // namespace troupe::config
