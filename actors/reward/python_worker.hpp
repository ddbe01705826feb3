// One worker process of a Python reward and the batches that it has: writes their requests, reads
// the replies in whatever order they come. Lives on the strand of the reward; the process is
// started, killed and reaped on the device queue. A worker that ends takes its batches with it:
// each gets an error, and its owner sends it to another worker. Bound: the batches that the owner
// gives it.
#pragma once

#include "actors/protocol/role_shell.hpp"
#include "actors/reward/worker_process.hpp"
#include "runtime/net/line_pair.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe::actors {

class PythonWorker : public std::enable_shared_from_this<PythonWorker> {
 public:
  using Json = nlohmann::json;
  using Answer = async::Oneshot<core::Result<Json>>;

  struct Batch {
    std::size_t company = 1;  // most batches of the worker, this one included
    core::TimePoint sent{};
    bool alone = false;      // when the worker ended: it had no other batch
    bool bystander = false;  // the worker was killed because of another batch
    std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  };

  // Takes a process that has been started. Its first line is the answer of `greeting`, unless it
  // was `greeted` before.
  PythonWorker(const RoleContext& context, std::unique_ptr<WorkerProcess> process, bool greeted);

  // Begins to read. `ended`: called when the worker has ended and its batches have their errors.
  void run(std::function<void()> ended);
  std::shared_ptr<Answer> greeting() const { return greeting_; }

  // Sends a request. Its answer: the reply, an object with "rewards" or "error"; kClosed when the
  // worker ended.
  std::shared_ptr<Batch> give(std::uint64_t id, std::string line, std::size_t company);
  // The batch has had no answer in time, and is wanted no more. Ends the worker, unless it
  // `cancels` and has answered others meanwhile.
  void overdue(std::uint64_t id, bool cancels);
  // Kills the process. The batches that it had are bystanders.
  void end();

  bool alive() const noexcept { return !ended_; }
  std::size_t load() const noexcept { return batches_.size(); }
  std::uint64_t given() const noexcept { return given_; }
  // Most batches that it may have because of those that it has.
  std::size_t company() const;

 private:
  static async::task<void> read(std::shared_ptr<PythonWorker> self);
  static async::task<void> write(std::shared_ptr<PythonWorker> self);
  void take(const std::string& line);
  void post(const std::string& line);
  void lose(const core::Error& error, bool bystanders);

  RoleContext context_;
  std::unique_ptr<WorkerProcess> process_;
  std::optional<net::LinePair> lines_;
  std::shared_ptr<Answer> greeting_ = std::make_shared<Answer>();
  bool greeted_;
  std::function<void()> on_end_;
  std::map<std::uint64_t, std::shared_ptr<Batch>> batches_;  // by id
  std::string unsent_;
  bool writing_ = false;
  bool ended_ = false;
  core::TimePoint heard_{};  // when the last line came
  std::uint64_t given_ = 0;
};

}  // namespace troupe::actors
