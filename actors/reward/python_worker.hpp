// One worker process of a Python reward or environment, and the batches (requests) that it has:
// writes them, reads the replies in whatever order they come. Lives on the strand of its owner; the
// process is started, killed and reaped on the device queue. A worker that ends takes its batches
// with it: each gets an error, and its owner decides what becomes of it. Bound: the batches that
// the owner gives it.
#pragma once

#include "actors/protocol/role_shell.hpp"
#include "actors/reward/worker_process.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/net/line_pair.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe::actors::reward {

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
    // When the worker began the batch, if it says so. `news` fires then and at the batch's end.
    std::optional<core::TimePoint> begun{};
    std::optional<async::Notifier> news{};
    bool over = false;
  };

  // Takes a process that has been started. Its first line is the answer of `greeting`, unless it
  // was `greeted` before.
  PythonWorker(const RoleContext& context, std::unique_ptr<WorkerProcess> process, bool greeted);

  // Begins to read. `ended`: called when the worker has ended and its batches have their errors.
  // `printed`: gets each line that the process prints, if that is taken (WorkerProcess::Prints).
  void run(std::function<void()> ended, std::function<void(std::string)> printed = nullptr);
  std::shared_ptr<Answer> greeting() const { return greeting_; }

  // Sends a request. Its answer: the reply, an object with "rewards", "turn" or "error"; kClosed
  // when the worker ended. An object with "begun" says before that the worker begins with it. A
  // worker that is not alive is given nothing.
  std::shared_ptr<Batch> give(std::uint64_t id, std::string line, std::size_t company);
  // The batch has had no answer in time, and is wanted no more. Ends the worker, unless it
  // `cancels` and has answered others meanwhile.
  void overdue(std::uint64_t id, bool cancels);
  // The batch is wanted no more, and the worker knows.
  void forget(std::uint64_t id) { batches_.erase(id); }
  // Sends what needs no answer.
  void tell(const std::string& line) { post(line); }
  // Kills the process. The batches that it had are bystanders.
  void end() { end("the " + name_ + " was ended"); }
  void end(const std::string& why);

  bool alive() const noexcept { return !ended_; }
  // How it ended; empty while that is not known.
  const std::string& how_it_ended() const noexcept { return how_; }
  // When its last line came.
  core::TimePoint heard() const noexcept { return heard_; }
  // True once a reply has come: such a worker can live.
  bool answered() const noexcept { return answered_; }
  // How many of its batches a worker had begun when it ended.
  std::size_t begun_at_end() const noexcept { return begun_at_end_; }
  std::size_t load() const noexcept { return batches_.size(); }
  std::uint64_t given() const noexcept { return given_; }
  // Most batches that it may have because of those that it has.
  std::size_t company() const;

 private:
  static async::task<void> read(std::shared_ptr<PythonWorker> self);
  static async::task<void> write(std::shared_ptr<PythonWorker> self);
  static async::task<void> read_prints(std::shared_ptr<PythonWorker> self,
                                       std::function<void(std::string)> printed);
  void take(const std::string& line);
  void post(const std::string& line);
  void lose(const core::Error& error, bool bystanders);
  static void settle(Batch& batch, core::Result<Json> answer);

  RoleContext context_;
  std::unique_ptr<WorkerProcess> process_;
  const std::string name_;
  std::optional<net::LinePair> lines_, prints_;
  std::shared_ptr<Answer> greeting_ = std::make_shared<Answer>();
  bool greeted_;
  std::function<void()> on_end_;
  std::map<std::uint64_t, std::shared_ptr<Batch>> batches_;  // by id
  std::string unsent_;
  bool writing_ = false;
  bool ended_ = false, answered_ = false;
  std::string how_;
  core::TimePoint heard_{};  // when the last line came
  std::uint64_t given_ = 0;
  std::size_t begun_at_end_ = 0;
};

}  // namespace troupe::actors::reward
