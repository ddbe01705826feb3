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

RowsRole::RowsRole(const TrainingRows& rows)
    : training_(rows.training()), held_out_(rows.held_out), passed_over_(rows.passed_over) {
  if (training_->reads_files()) thread_ = std::make_unique<async::DeviceThread>("rows");
}

async::task<core::Result<RowsPage>> RowsRole::on(FetchRows request) {
  core::Result<RowsPage> page = RowsPage();
  if (thread_) {
    auto job = [this, request] { return page_of(request); };
    page = co_await thread_->run(std::move(job), async::DeviceQueue::kWait);
  } else {
    page = page_of(request);
  }
  if (page) sent_ += page->rows.size();
  co_return page;
}

core::Result<RowsPage> RowsRole::page_of(const FetchRows& request) {
  const std::uint64_t size = !request.held_out ? training_->size()
                             : held_out_       ? held_out_->size()
                                               : 0;
  if (request.held_out && request.first >= size) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "there is no held-out row " + std::to_string(request.first + 1));
  }
  std::uint64_t left =
      request.count == 0 ? std::numeric_limits<std::uint64_t>::max() : request.count;
  if (request.held_out) left = std::min(left, size - request.first);
  RowsPage page;
  page.total = size;
  std::uint64_t bytes = 0;
  for (std::uint64_t place = request.first; left > 0; ++place, --left) {
    TROUPE_TRY_ASSIGN(row, row_at(request, place));
    bytes += bytes_of_row(row);
    if (!page.rows.empty() && bytes > actors::limits::kPage_bytes) break;
    page.rows.push_back(stored(row));
  }
  return page;
}

core::Result<troupe::data::SupervisedRow> RowsRole::row_at(const FetchRows& request,
                                                           std::uint64_t place) {
  if (request.held_out) return held_out_->row(place);
  return training_->at(place + passed_over_);
}

async::task<core::Result<Ack>> RowsRole::on(SaveState request) {
  TROUPE_CO_TRY(write_rows_state(request.folder, passed_over_));
  co_return Ack{};
}

async::task<core::Result<Loaded>> RowsRole::on(LoadState request) {
  co_return Loaded{request.updates, request.updates};
}

}  // namespace troupe::actors::supervised
