#include "actors/supervised/rows_role.hpp"

#include "actors/protocol/limits.hpp"
#include "actors/protocol/training_rows.hpp"
#include "actors/supervised/rows_state.hpp"

#include <limits>

namespace troupe::actors::supervised {
namespace {

std::uint64_t bytes_of_row(const troupe::data::SupervisedRow& row) {
  return static_cast<std::uint64_t>(row.tokens()) * sizeof(std::int32_t) + row.learn.size() +
         row.file.size() + sizeof(TrainingRow);
}

}  // namespace

async::task<core::Result<RowsPage>> RowsRole::on(FetchRows request) {
  const troupe::data::SupervisedDataset* const set =
      request.held_out ? rows_.held_out.get() : rows_.training.get();
  if (set == nullptr || (request.held_out && request.first >= set->size())) {
    co_return core::fail(core::ErrorCode::kInvalidArgument,
                         "there is no held-out row " + std::to_string(request.first + 1));
  }
  std::uint64_t left =
      request.count == 0 ? std::numeric_limits<std::uint64_t>::max() : request.count;
  if (request.held_out) left = std::min(left, set->size() - request.first);
  RowsPage page;
  page.total = set->size();
  std::uint64_t bytes = 0;
  for (std::uint64_t place = request.first; left > 0; ++place, --left) {
    const auto row = set->row(request.held_out ? place : rows_.row_at(place));
    bytes += bytes_of_row(row);
    if (!page.rows.empty() && bytes > actors::limits::kPage_bytes) break;
    page.rows.push_back(stored(row));
  }
  sent_ += page.rows.size();
  co_return page;
}

async::task<core::Result<Ack>> RowsRole::on(SaveState request) {
  TROUPE_CO_TRY(write_rows_state(request.folder, rows_.passed_over));
  co_return Ack{};
}

async::task<core::Result<Loaded>> RowsRole::on(LoadState request) {
  co_return Loaded{request.updates, request.updates};
}

}  // namespace troupe::actors::supervised
