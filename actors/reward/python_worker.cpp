#include "actors/reward/python_worker.hpp"

#include "actors/reward/limits.hpp"
#include "actors/reward/worker_words.hpp"
#include "runtime/data/limits.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>

namespace troupe::actors::reward {

PythonWorker::PythonWorker(const RoleContext& context,
                           std::unique_ptr<WorkerProcess> process,
                           bool greeted)
    : context_(context), process_(std::move(process)), name_(process_->name()), greeted_(greeted) {
  WorkerProcess::Streams streams = process_->take_streams();
  lines_.emplace(context.scope->executor(), std::move(streams.requests), std::move(streams.replies),
                 std::move(streams.read), troupe::data::limits::kJsonLine_bytes_max);
  if (!streams.prints) return;
  prints_.emplace(context.scope->executor(), net::OwnedFd(), std::move(streams.prints), "",
                  limits::kPrintedLine_bytes_max, net::LinePair::Longer::kCut);
}

void PythonWorker::run(std::function<void()> ended, std::function<void(std::string)> printed) {
  on_end_ = std::move(ended);
  if (prints_) context_.scope->spawn("", read_prints(shared_from_this(), std::move(printed)));
  context_.scope->spawn("", read(shared_from_this()));
}

std::size_t PythonWorker::company() const {
  std::size_t most = limits::kRewardWorkerBatches_max;
  for (const auto& [id, batch] : batches_)
    most = std::min(most, batch->company);
  return most;
}

std::shared_ptr<PythonWorker::Batch> PythonWorker::give(std::uint64_t id,
                                                        std::string line,
                                                        std::size_t company) {
  auto batch = std::make_shared<Batch>();
  batch->company = company;
  batch->sent = context_.timers->now();
  batch->news.emplace(*context_.timers);
  batches_.emplace(id, batch);
  ++given_;
  post(line);
  return batch;
}

void PythonWorker::post(const std::string& line) {
  unsent_ += line;
  unsent_ += '\n';
  if (writing_ || ended_) return;
  writing_ = true;
  context_.scope->spawn("", write(shared_from_this()));
}

// A failure to write is left to `read`, which then sees the end of the connection.
async::task<void> PythonWorker::write(std::shared_ptr<PythonWorker> self) {
  while (!self->unsent_.empty() && !self->ended_) {
    std::string now = std::exchange(self->unsent_, {});
    const auto written = co_await self->lines_->write(std::move(now));
    if (!written) break;
  }
  self->writing_ = false;
}

// To the end of the stream, which is that of the process group: what it printed last is read, too.
async::task<void> PythonWorker::read_prints(std::shared_ptr<PythonWorker> self,
                                            std::function<void(std::string)> printed) {
  for (;;) {
    auto line = co_await self->prints_->read();
    if (!line) break;
    if (printed) printed(std::move(*line));
  }
}

async::task<void> PythonWorker::read(std::shared_ptr<PythonWorker> self) {
  bool closed = false;
  while (!self->ended_ && !closed) {
    auto line = co_await self->lines_->read();
    if (self->ended_) break;
    closed = !line && line.error().code == ErrorCode::kClosed;
    if (line) {
      self->take(*line);
    } else if (!closed) {
      self->lose({ErrorCode::kClosed, "the " + self->name_ + "'s reply: " + line.error().message},
                 false);
    }
  }
  if (closed) {
    // Nothing more is sent to it, but its batches wait until it is known how it ended.
    self->ended_ = true;
    auto job = [process = std::move(self->process_)]() -> core::Result<std::string> {
      return process->ended().error.message;
    };
    auto how = co_await self->context_.device->run(std::move(job), async::DeviceQueue::kWait);
    self->lose({ErrorCode::kClosed, how ? *how : how.error().message}, false);
  } else {
    auto job = [process = std::move(self->process_)]() -> core::Result<void> {
      process->kill();
      return {};
    };
    (void)co_await self->context_.device->run(std::move(job), async::DeviceQueue::kWait);
  }
  if (self->on_end_) self->on_end_();
}

// One line: the greeting, or a reply. A reply to a batch that is wanted no more is dropped.
void PythonWorker::take(const std::string& line) {
  heard_ = context_.timers->now();
  if (!greeted_) {
    greeted_ = true;
    greeting_->set(first_words(line));
    return;
  }
  Json reply = parse::written_json<Json>(line);
  if (reply.is_object() && reply.contains("begun")) {
    const Json& id = reply["begun"];
    const auto batch = batches_.find(id.is_number_unsigned() ? id.get<std::uint64_t>() : 0);
    if (batch == batches_.end()) return;
    batch->second->begun = heard_;
    return batch->second->news->notify_all();
  }
  if (!reply.is_object() || !reply.contains("id") || !reply["id"].is_number_unsigned()) {
    return lose({ErrorCode::kClosed, "the " + name_ + "'s reply is not a JSON object"}, false);
  }
  answered_ = true;
  const auto found = batches_.find(reply["id"].get<std::uint64_t>());
  if (found == batches_.end()) return;
  const auto batch = std::move(found->second);
  batches_.erase(found);
  settle(*batch, std::move(reply));
}

void PythonWorker::overdue(std::uint64_t id, bool cancels) {
  const auto found = batches_.find(id);
  if (found == batches_.end()) return;
  const bool responds = heard_ > found->second->sent;
  batches_.erase(found);
  if (ended_) return;
  if (cancels && responds) return post(Json({{"cancel", id}}).dump());
  end();
}

void PythonWorker::end(const std::string& why) {
  if (!ended_) lose({ErrorCode::kClosed, why}, true);
}

// Ends the worker and gives the error to what waits for it.
void PythonWorker::lose(const core::Error& error, bool bystanders) {
  ended_ = true;
  if (how_.empty()) how_ = error.message;
  lines_->close();  // `read` ends, and kills the process
  greeting_->set(core::fail(error));
  const auto lost = std::exchange(batches_, {});
  for (const auto& [id, batch] : lost)
    begun_at_end_ += batch->begun ? 1 : 0;
  for (const auto& [id, batch] : lost) {
    batch->alone = lost.size() == 1;
    batch->bystander = bystanders;
    settle(*batch, core::fail(error));
  }
}

void PythonWorker::settle(Batch& batch, core::Result<Json> answer) {
  batch.over = true;
  batch.answer->set(std::move(answer));
  batch.news->notify_all();
}

}  // namespace troupe::actors::reward
