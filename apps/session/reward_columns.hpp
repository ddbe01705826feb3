// Checks, before a reward is called, that rows have the columns without which its Python function
// cannot be: the one check of runs and of commands that score. Pure.
#pragma once

#include "runtime/core/error_list.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/prompt_dataset.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe::session {

// Where rows come from (the key or flag that names them), whether one of them has a column, and the
// columns of the first, for messages.
struct RowColumns {
  std::string from;
  std::function<bool(const std::string& name)> has;
  std::string all;
};
// `rows` outlive the result.
RowColumns columns_of_rows(const std::vector<data::PromptRow>& rows, std::string from);

// Error kConfig for each of `needs` (RewardCalls::needs) that no row has. `key` and `file`: what
// names the Python file, and its name.
core::Result<void> check_needs(const std::string& key,
                               const std::string& file,
                               const std::vector<std::string>& needs,
                               const RowColumns& columns);

}  // namespace troupe::session
