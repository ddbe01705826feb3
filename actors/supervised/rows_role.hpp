// The data role of supervised training: serves the rows of a dataset by their place in the order in
// which training takes them, and the held-out rows by index. So the rows of a step
// are a function of its number, and of how many places a run that went back has passed over: the
// only state that it has. Runs on its strand; rows of a stream are read on a thread of its own.
// Bound: pages of kPage_bytes.
#pragma once

#include "actors/protocol/messages_rows.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/data/placed_rows.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <memory>

namespace troupe::actors::supervised {

// Datasets are read-only and may be shared with other sessions.
struct TrainingRows {
  troupe::data::MakePlacedRows training;
  std::shared_ptr<const troupe::data::SupervisedDataset> held_out;  // null without an evaluation
  std::uint64_t passed_over = 0;  // offset of every training place in their order
};

class RowsRole {
 public:
  explicit RowsRole(const TrainingRows& rows);

  // A repeated request gets the same page. Errors: kInvalidArgument (there are no such rows), those
  // of PlacedRows::at.
  async::task<core::Result<RowsPage>> on(FetchRows request);
  // Writes how many places were passed over; the order follows from the seed.
  async::task<core::Result<Ack>> on(SaveState request);
  // Loads nothing: the maker has read it (read_rows_state).
  async::task<core::Result<Loaded>> on(LoadState request);

  wire::Amounts amounts() const { return {{"rows_sent", static_cast<double>(sent_)}}; }

 private:
  core::Result<RowsPage> page_of(const FetchRows& request);
  core::Result<troupe::data::SupervisedRow> row_at(const FetchRows& request, std::uint64_t place);

  const std::unique_ptr<troupe::data::PlacedRows> training_;
  const std::shared_ptr<const troupe::data::SupervisedDataset> held_out_;
  const std::uint64_t passed_over_;
  std::uint64_t sent_ = 0;
  std::unique_ptr<async::DeviceThread> thread_;  // uses training_; null: rows are held
};

}  // namespace troupe::actors::supervised
