// The data role of supervised training: serves the rows of a dataset, encoded once, by their place
// in the order in which training takes them, and the held-out rows by index. So the rows of a step
// are a function of its number, and of how many places a run that went back has passed over: the
// only state that it has. Runs on its strand. Bound: pages of kPage_bytes.
#pragma once

#include "actors/protocol/messages_rows.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/data/blend_order.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <memory>

namespace troupe::actors::supervised {

// Datasets are read-only and may be shared with other sessions.
struct TrainingRows {
  std::shared_ptr<const troupe::data::SupervisedDataset> training;
  troupe::data::BlendOrder order;                                   // of `training`
  std::shared_ptr<const troupe::data::SupervisedDataset> held_out;  // null without an evaluation
  std::uint64_t passed_over = 0;  // offset of every training place in `order`

  std::uint64_t row_at(std::uint64_t place) { return order.row_at(place + passed_over); }
};

class RowsRole {
 public:
  explicit RowsRole(TrainingRows rows) : rows_(std::move(rows)) {}

  // A repeated request gets the same page. Error kInvalidArgument: there are no such rows.
  async::task<core::Result<RowsPage>> on(FetchRows request);
  // Writes how many places were passed over; the order follows from the seed.
  async::task<core::Result<Ack>> on(SaveState request);
  // Loads nothing: the maker has read it (read_rows_state).
  async::task<core::Result<Loaded>> on(LoadState request);

  wire::Amounts amounts() const { return {{"rows_sent", static_cast<double>(sent_)}}; }

 private:
  TrainingRows rows_;
  std::uint64_t sent_ = 0;
};

}  // namespace troupe::actors::supervised
