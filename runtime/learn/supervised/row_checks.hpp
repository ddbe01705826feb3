// What can be said of the rows and settings of supervised training without a model: how much room a
// row takes in a micro-batch, and whether all fit. Pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/settings.hpp"

#include <cstdint>

namespace troupe::learn {

// Number of tokens of the data row that go through the model.
std::int64_t row_cost(const Method& method, const data::SupervisedRow& row);

// Error kConfig, naming the row: it does not fit into a micro-batch.
core::Result<void> check_rows(const data::SupervisedDataset& data,
                              const SupervisedSettings& settings);
core::Result<void> check_row(const data::SupervisedRow& row, const SupervisedSettings& settings);

// Error kConfig, naming the key: a setting makes no sense.
core::Result<void> check_settings(const SupervisedSettings& settings);

}  // namespace troupe::learn
