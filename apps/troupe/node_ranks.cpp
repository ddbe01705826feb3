#include "apps/troupe/node_ranks.hpp"

#include "actors/company/limits.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/troupe/reentry_waits.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/core/clock.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace troupe::app {
namespace {

constexpr useconds_t kPause_us = 20'000;  // between two looks at the processes

// The words of `troupe node` without these flags and their values.
std::vector<std::string> without(cli::Words words, std::initializer_list<std::string_view> flags) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view flag = word.substr(0, word.find('='));
    if (std::find(flags.begin(), flags.end(), flag) == flags.end()) {
      kept.push_back(words[i]);
    } else if (flag == word) {
      ++i;  // its value
    }
  }
  return kept;
}

// One of the nodes and its process.
class RankProcess {
 public:
  RankProcess(std::string name, std::vector<std::string> words)
      : name_(std::move(name)), words_(std::move(words)) {
    words_.insert(words_.end(), {"--name", name_});
  }

  Result<void> start() {
    core::ChildSpec spec;
    spec.words = words_;
    spec.this_program = true;
    TROUPE_TRY_SET(process_, core::ChildProcess::start("a process for " + name_, std::move(spec)));
    started_ = clock_.now();
    return {};
  }
  // False once it was dismissed. Error: it has ended for a cause that stays.
  Result<bool> tend() {
    if (over_ || process_.running()) return !over_;
    if (process_.pid() != 0) {
      const int status = process_.wait();
      process_ = core::ChildProcess();
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      if (code == 0) over_ = true;
      if (code == core::exit_status(ErrorCode::kConfig))
        return fail(ErrorCode::kConfig, name_ + " cannot be a node here; see its lines above");
      if (code == core::exit_status(ErrorCode::kPeerLost))
        return fail(ErrorCode::kPeerLost, name_ + " waited in vain; see its lines above");
      if (over_ || cli::stop_requested()) return !over_;
      const bool lived = clock_.now() - started_ > actors::company::limits::kRestartWindow;
      again_ = clock_.now() + waits_.span(lived);
      cli::say(name_ + " " + core::how_it_ended(status) + "; its process is started again");
    }
    if (!cli::stop_requested() && clock_.now() >= again_) TROUPE_TRY(start());
    return true;
  }
  // True when it has ended.
  bool ended() { return process_.pid() == 0 || !process_.running(); }
  void stop() {
    if (!ended()) process_.signal(SIGTERM);
  }

 private:
  const core::SteadyClock clock_{};
  const std::string name_;
  std::vector<std::string> words_;
  core::ChildProcess process_;
  ReentryWaits waits_;
  core::TimePoint started_{}, again_{};
  bool over_ = false;
};

// Asks all to stop and waits until they have. A second signal ends this process, and them.
void stop_all(std::vector<RankProcess>& all) {
  for (RankProcess& one : all)
    one.stop();
  while (!std::all_of(all.begin(), all.end(), [](RankProcess& one) { return one.ended(); }))
    ::usleep(kPause_us);
}

}  // namespace

Result<void> run_node_ranks(const std::string& name, std::int64_t ranks, cli::Words words) {
  std::vector<std::string> common = {"troupe", "node"};
  for (std::string& word : without(words, {"--ranks", "--name"}))
    common.push_back(std::move(word));
  std::vector<RankProcess> all;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    all.emplace_back(name + "-" + std::to_string(rank), common);
    TROUPE_TRY(all.back().start());
  }
  for (bool any = true; any && !cli::stop_requested(); ::usleep(kPause_us)) {
    any = false;
    for (RankProcess& one : all) {
      const auto stays = one.tend();
      if (!stays) {
        stop_all(all);
        return stays.failure();
      }
      any = any || *stays;
    }
  }
  stop_all(all);
  if (cli::stop_requested()) return fail(ErrorCode::kInterrupted, "interrupted");
  return {};
}

}  // namespace troupe::app
