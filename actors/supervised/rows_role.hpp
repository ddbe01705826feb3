// The data role of supervised training: serves the rows of a dataset, encoded once, by their place
// in the order in which training takes them, and the held-out rows by index. So the rows of a step
// are a function of its number. It has no state of its own. Runs on its strand. Bound: pages of
// kPage_bytes.
#pragma once

#include "actors/protocol/messages_rows.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/data/blend_order.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <memory>

namespace troupe::actors {

// Datasets are read-only and may be shared with other sessions.
struct TrainingRows {
  std::shared_ptr<const data::SupervisedDataset> training;
  data::BlendOrder order;                                   // of `training`
  std::shared_ptr<const data::SupervisedDataset> held_out;  // null without an evaluation
};

class RowsRole {
 public:
  explicit RowsRole(TrainingRows rows) : rows_(std::move(rows)) {}

  // A repeated request gets the same page. Error kInvalidArgument: there are no such rows.
  async::task<core::Result<RowsPage>> on(FetchRows request);
  // Writes nothing: the order follows from the seed.
  async::task<core::Result<Ack>> on(SaveState request);
  // Loads nothing.
  async::task<core::Result<Loaded>> on(LoadState request);

  wire::Amounts amounts() const { return {{"rows_sent", static_cast<double>(sent_)}}; }

 private:
  TrainingRows rows_;
  std::uint64_t sent_ = 0;
};

}  // namespace troupe::actors
