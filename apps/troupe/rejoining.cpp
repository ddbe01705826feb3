#include "apps/troupe/rejoining.hpp"

#include "actors/company/limits.hpp"
#include "apps/cli/words.hpp"
#include "runtime/core/texts.hpp"

#include <filesystem>

namespace troupe::app {

Rejoining::Rejoining(Terms terms) : terms_(std::move(terms)) {
  std::error_code error;
  by_folder_ = std::filesystem::is_directory(terms_.join.join, error);
}

Result<session::JoinTarget> Rejoining::find() {
  auto target = session::find_company(terms_.join);
  if (target) found_ = true;
  if (!target && found_) {
    core::Error away = target.error();
    away.code = ErrorCode::kPeerLost;
    return fail(std::move(away));
  }
  return target;
}

session::NodeSelf Rejoining::bound(session::NodeSelf self,
                                   const session::JoinTarget& target) const {
  if (!terms_.one_run) return self;
  self.run_id = run_id_ != 0 ? run_id_ : target.run_id;
  self.run = run_id_ != 0 ? run_ : target.run;
  return self;
}

void Rejoining::joined(const session::NodeGuest& guest) {
  away_since_.reset();
  taken_since_.reset();
  last_.clear();
  if (terms_.waits_first) settled_ = true;
  if (run_id_ != 0 || !terms_.one_run) return;
  run_id_ = guest.run_id;
  run_ = guest.run_folder;
}

bool Rejoining::may_wait() {
  if (!away_since_) away_since_ = clock_.now();
  const std::chrono::duration<double> away = clock_.now() - *away_since_;
  return terms_.wait_s == 0 || away.count() < terms_.wait_s;
}

std::string Rejoining::patience() const {
  return terms_.wait_s == 0 ? "" : core::printed(", for at most %g s (--wait-s)", terms_.wait_s);
}

// The answer that no later try can change. A name may be held by an earlier connection of this
// process, which the company soon drops; if it stays taken, another one has it.
std::optional<core::Error> Rejoining::final_answer(const core::Error& error) {
  switch (error.code) {
    case ErrorCode::kNotFound:
      return error.advising("attach it anew, or start it with --any-run");
    case ErrorCode::kConfig:
    case ErrorCode::kUnsupported:
      return error;
    case ErrorCode::kInvalidArgument:
      if (!taken_since_) taken_since_ = clock_.now();
      if (clock_.now() - *taken_since_ <= 2 * actors::company::limits::kFrozenAfter)
        return std::nullopt;
      if (error.advice().empty()) {
        return error.within("the company does not take " + terms_.who)
            .advising("give another --name");
      }
      return error.within("the company does not take " + terms_.who);
    default:
      taken_since_.reset();
      return std::nullopt;
  }
}

std::optional<Result<void>> Rejoining::next(const Result<session::NodeEnd>& end) {
  const Result<void> interrupted = fail(ErrorCode::kInterrupted, "interrupted", terms_.interrupted);
  if (end && *end == session::NodeEnd::kStopped) return interrupted;
  if (end && *end == session::NodeEnd::kDismissed) {
    cli::say(terms_.dismissed);
    return Result<void>();
  }
  if (!end) {
    if (auto answer = final_answer(end.error())) return Result<void>(fail(*answer));
    if (!settled_ && !terms_.waits_first) return Result<void>(end.failure());
  }
  std::error_code error;
  const bool folder_gone = by_folder_ && !std::filesystem::exists(terms_.join.join, error);
  if (folder_gone && terms_.one_run) {
    return Result<void>(fail(ErrorCode::kPeerLost, "the run's folder " + terms_.join.join +
                                                       " is gone, so " + terms_.who + " ends"));
  }
  if (!may_wait()) {
    return Result<void>(
        fail(ErrorCode::kPeerLost,
             core::printed("there was no run for %g s, so ", terms_.wait_s) + terms_.who + " ends",
             "--wait-s 0 waits for ever"));
  }
  std::string why = end ? "the run went away" : end.error().message;
  if (taken_since_) why = "the company does not take " + terms_.who + " yet";
  if (why != last_) {
    cli::say(why + "; " + terms_.who + " tries again until it is there" + patience() +
             " (Ctrl-C ends this)");
  }
  last_ = why;
  if (!waits_.next(end.has_value())) return interrupted;
  return std::nullopt;
}

}  // namespace troupe::app
