#include "apps/pipeline/stage_process.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/pipeline/processes.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace troupe::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

// 3: memory, disk or a folder that another process still holds; 5: a process is gone.
bool StageEnd::may_pass() const {
  if (frozen || WIFSIGNALED(status)) return true;
  return WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 5;
}

std::string StageEnd::how() const {
  return frozen ? "took no processor time and was ended" : core::how_it_ended(status);
}

core::Result<StageEnd> run_stage(std::vector<std::string> words,
                                 const std::filesystem::path& log,
                                 double silent_s,
                                 const std::function<void(double wall_s, double cpu_s)>& tick) {
  core::OwnedFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!out) return store::io_failure("write", log, errno);
  core::OwnedFd in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  core::ChildSpec spec;
  spec.this_program = true;
  spec.words = std::move(words);
  spec.words.insert(spec.words.begin(), "troupe");
  spec.descriptors = {
      {in.get(), STDIN_FILENO}, {out.get(), STDOUT_FILENO}, {out.get(), STDERR_FILENO}};
  const double before = descendants_cpu_s();
  const auto begin = Clock::now();
  TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("a stage", std::move(spec)));
  StageEnd end;
  auto moved = begin;
  double moved_at = 0;
  // A stage that is stopped or asked to stop is waited for; a second signal ends this process and,
  // with it, the stage.
  while (!child.wait(std::chrono::milliseconds(500))) {
    if (cli::stop_requested() && !end.stopped) {
      end.stopped = true;
      child.signal(cli::stop_deadline() ? SIGTERM : SIGINT);
    }
    end.cpu_s = std::max(end.cpu_s, descendants_cpu_s() - before);
    end.wall_s = seconds_since(begin);
    reap_orphans(child.pid());
    tick(end.wall_s, end.cpu_s);
    // Its own time: the nodes of a frozen head are not frozen.
    if (const double own = process_cpu_s(child.pid()); own > moved_at) {
      moved_at = own;
      moved = Clock::now();
    } else if (silent_s > 0 && seconds_since(moved) > silent_s) {
      end.frozen = true;
      child.kill();
      break;
    }
  }
  if (!end.frozen) end.status = child.wait();
  end.wall_s = seconds_since(begin);
  end.cpu_s = std::max(end.cpu_s, descendants_cpu_s() - before);
  return end;
}

}  // namespace troupe::pipeline
