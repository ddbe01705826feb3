#include "actors/controller/reward_service.hpp"

#include "actors/controller/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/core/at_exit.hpp"

#include <algorithm>

namespace troupe::actors::controller {

namespace {

// What the listener hears of the rewards in force.
SetRewards told(const RewardBoard& board, std::uint64_t from_update) {
  return {board.set(), from_update, board.members(), {}, board.formula()};
}

}  // namespace

// Marks a change as under way until the returned object is destroyed.
auto RewardService::begin_change() {
  changing_ = true;
  return core::AtExit([this] {
    changing_ = false;
    run_.changed.notify_all();
  });
}

RewardService::RewardService(RunState& run)
    : run_(run),
      away_max_(run.plan.reward_away),
      board_(run.plan.rewards, run.plan.earlier_sets, run.plan.reward_formula),
      from_update_(run.plan.earlier_sets.empty() ? 0 : run.plan.earlier_sets.back().from_update) {}

std::string RewardService::waited() const {
  const auto seconds = std::chrono::round<std::chrono::seconds>(away_max_);
  return std::to_string(seconds.count()) + " s (--reward.away_s)";
}

void RewardService::up(const std::string& peer) {
  for (const RewardMember& member : board_.members()) {
    if (member.peer != peer || !board_.came(member.name, peer)) continue;
    run_.listener.on_rewards(told(board_, std::max(from_update_, run_.next_issue)));
    run_.changed.notify_all();
    return;
  }
}

async::task<core::Result<void>> RewardService::await_absent() {
  if (!awaits()) co_return core::Result<void>();
  // A reward that is still connected, because the run was restarted, is reported within this pause.
  co_await async::sleep_for(*run_.context.timers, limits::kLookEvery);
  if (!awaits()) co_return core::Result<void>();
  run_.listener.on_awaited_rewards(board_.absent());
  const auto deadline = async::Deadline::after(*run_.context.timers, away_max_);
  while (awaits()) {
    if (co_await run_.changed.wait(deadline)) continue;
    if (!awaits()) break;
    co_return core::fail(core::ErrorCode::kPeerLost,
                         "reward " + *board_.absent().begin() +
                             ", which was attached to this run, did not come back within " +
                             waited(),
                         "run the same command again, and attach it or detach it");
  }
  co_return core::Result<void>();
}

async::task<core::Result<RewardsChanged>> RewardService::tell(RewardBoard next) {
  SetRewards request = next.change(std::max(run_.next_issue, run_.plan.logged_until));
  const RewardsChanged reply{request.set, request.from_update};
  TROUPE_CO_TRY(co_await ask(run_.context, kDataRole, std::move(request)));
  next.told();
  board_ = std::move(next);
  from_update_ = reply.from_update;
  run_.listener.on_rewards(told(board_, reply.from_update));
  co_return reply;
}

template <class Request>
async::task<core::Result<RewardsChanged>> RewardService::change(
    core::Result<void> (RewardBoard::*step)(const Request&), Request request) {
  while (changing_)
    co_await run_.changed.wait(async::Deadline::none());
  const auto change = begin_change();
  RewardBoard next = board_;
  TROUPE_CO_TRY((next.*step)(request));
  co_return co_await tell(std::move(next));
}

// A reward that the run waits for returns to its set, with the weight that it has there.
async::task<core::Result<RewardsChanged>> RewardService::attach(AttachReward request) {
  if (board_.is_absent(request.name)) {
    up(request.peer);
    if (!board_.is_absent(request.name)) {
      co_return RewardsChanged{board_.set(), std::max(from_update_, run_.next_issue)};
    }
  }
  co_return co_await change(&RewardBoard::attach, std::move(request));
}

async::task<core::Result<RewardsChanged>> RewardService::reweight(ReweightReward request) {
  co_return co_await change(&RewardBoard::reweight, std::move(request));
}

async::task<core::Result<RewardsChanged>> RewardService::detach(DetachReward request) {
  const std::string name = request.name;
  if (board_.is_absent(name)) co_return co_await forgo(name);
  TROUPE_CO_TRY_ASSIGN(changed, co_await change(&RewardBoard::detach, std::move(request)));
  DrainReward drain{name};
  TROUPE_CO_TRY(co_await ask(run_.context, kDataRole, std::move(drain)));
  board_.drained(name);
  co_return changed;
}

// Detaches an absent reward. The data role fails the groups that wait for it, to be reissued.
async::task<core::Result<RewardsChanged>> RewardService::forgo(std::string name) {
  while (changing_)
    co_await run_.changed.wait(async::Deadline::none());
  const auto change = begin_change();
  RewardBoard next = board_;
  TROUPE_CO_TRY(next.detach({name}));
  next.forgo(name);
  co_return co_await tell(std::move(next));
}

async::task<core::Result<void>> RewardService::lose(std::string peer, std::string cause) {
  while (changing_)
    co_await run_.changed.wait(async::Deadline::none());
  {
    const auto change = begin_change();
    RewardBoard next = board_;
    if (!next.lose(peer)) co_return core::Result<void>();
    if (!next.bereft()) {
      TROUPE_CO_TRY(co_await tell(std::move(next)));
      co_return core::Result<void>();
    }
    board_ = std::move(next);  // the data role hears of it with the next reward
  }
  const std::uint64_t set = board_.set();
  co_await async::sleep_for(*run_.context.timers, away_max_);
  if (!board_.bereft() || board_.set() != set) co_return core::Result<void>();
  const std::string what = board_.members().empty()
                               ? "the run's last reward, " + peer + ","
                               : "reward " + peer + ", which the formula of the rewards names,";
  const std::string wanted =
      board_.members().empty() ? "none was attached" : "was not attached again";
  co_return core::fail(core::ErrorCode::kPeerLost,
                       what + " is lost (" + cause + ") and " + wanted + " within " + waited(),
                       "run the same command again and attach a reward to it");
}

}  // namespace troupe::actors::controller
