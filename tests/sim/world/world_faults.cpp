// The faults of a world.
#include "actors/controller/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/messages_node.hpp"
#include "tests/sim/world/world.hpp"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using Kind = Fault::Kind;

namespace {
constexpr double kSlowLink = 200'000;  // bytes a second

// How often a sick engine may fail until it is started again: a few tickets, and what is on its way
// while nobody can tell it to stop. One that says it is full is offered all tickets, of training
// and of evaluations, once in a back-off.
std::uint64_t sick_calls(const WorldPlan& plan, core::ErrorCode code) {
  constexpr std::uint64_t kFew = 60;
  if (code != core::ErrorCode::kOverloaded) return kFew;
  return 2 * plan.groups * (actors::controller::limits::kRefusals_max + 1);
}

}  // namespace

void World::each_far(const std::function<void(Node&)>& what) {
  for (const auto& node : nodes_) {
    if (node->self().host == kFarHost && node->process().alive()) what(*node);
  }
}

void World::freeze(Process& process, core::Duration span) {
  process.freeze(true);
  after(span, [&process] { process.freeze(false); });
}

void World::cut(bool there, bool back, bool cut) {
  if (there) links_.cut(kHeadHost, kFarHost, cut);
  if (back) links_.cut(kFarHost, kHeadHost, cut);
}

void World::flap(std::uint64_t times, core::Duration span) {
  if (times == 0 || outcome_) return;
  cut(true, true, true);
  after(span, [this, times, span] {
    cut(true, true, false);
    last_fault_ = std::max(last_fault_, time_.now());
    after(span / 2, [this, times, span] { flap(times - 1, span); });
  });
}

void World::inject(const Fault& fault) {
  if (outcome_) return;
  note("FAULT " + fault.text());
  truth_.census.count("fault", kind_name(fault.kind));
  last_fault_ = std::max(last_fault_, time_.now() + fault.span);
  switch (fault.kind) {
    case Kind::kCrash:
      if (Node* const node = living(fault.target)) node->kill();
      break;
    case Kind::kFreeze:
      if (Node* const node = living(fault.target)) freeze(node->process(), fault.span);
      break;
    case Kind::kHostCrash:
      each_far([](Node& node) { node.kill(); });
      break;
    case Kind::kHostFreeze:
      each_far([&](Node& node) { freeze(node.process(), fault.span); });
      break;
    case Kind::kCut:
      cut(true, true, true);
      after(fault.span, [this] { cut(true, true, false); });
      break;
    case Kind::kCutOneWay: {
      const bool there = fault.target == "to";
      cut(there, !there, true);
      after(fault.span, [this, there] { cut(there, !there, false); });
      break;
    }
    case Kind::kFlap:
      flap(fault.times, fault.span);
      last_fault_ =
          std::max(last_fault_, time_.now() + static_cast<int>(fault.times) * fault.span * 3 / 2);
      break;
    case Kind::kReset:
      if (!head_lives()) break;
      each_far([this](Node& node) {
        links_.sever(head_->process(), node.process(), "its connection was reset");
      });
      break;
    case Kind::kSlow:
      links_.slow(kHeadHost, kFarHost, kSlowLink);
      links_.slow(kFarHost, kHeadHost, kSlowLink);
      after(fault.span, [this] {
        links_.slow(kHeadHost, kFarHost, 0);
        links_.slow(kFarHost, kHeadHost, 0);
      });
      break;
    case Kind::kError:
      truth_.arm(fault.target, fault.what, fault.code, fault.times);
      for (std::size_t i = 0; fault.target == "all generators" && i <= plan_.far_nodes.size(); ++i)
        truth_.arm("generator/" + std::to_string(i), fault.what, fault.code, fault.times);
      break;
    case Kind::kSick:
      truth_.sicken(fault.target, fault.what, fault.code, sick_calls(plan_, fault.code));
      break;
    case Kind::kPoison:
      truth_.poison(fault.times, fault.code);
      break;
    case Kind::kRankLoss:
      strike_rank(fault);
      break;
    case Kind::kDrain:
      drain(fault.target);
      break;
    case Kind::kDiskFull:
      disk_.set_full(true);
      after(fault.span, [this] { disk_.set_full(false); });
      break;
    case Kind::kRepeat:
      links_.repeat(0.3);
      after(fault.span, [this] { links_.repeat(0); });
      break;
    case Kind::kHeadCrash:
      crash_head(fault.span);
      break;
    case Kind::kHeadFreeze:
      if (head_lives()) freeze(head_->process(), fault.span);
      break;
    case Kind::kWriteCrash:
      disk_.crash_in(fault.times, fault.times % 3 == 0,
                     [this, span = fault.span](const Process& of) {
                       after(0ms, [this, span, &of] { crash_in_write(of, span); });
                     });
      break;
  }
}

// Strikes a rank when its gang comes to a phase, if it still does.
void World::strike_rank(const Fault& fault) {
  gangs_.arm(fault.what, [this, fault] {
    after(0ms, [this, fault] {
      Node* const node = living(fault.target);
      if (outcome_ || node == nullptr) return;
      note("FAULT " + fault.target + " is lost in phase " + fault.what);
      truth_.census.count("rank lost", fault.what + (fault.times == 0 ? " killed" : " frozen"));
      last_fault_ = std::max(last_fault_, time_.now() + fault.span);
      if (fault.times == 0) return node->kill();
      freeze(node->process(), fault.span);
    });
  });
}

// The command that takes a node out of a run; it may come in the wrong moment.
void World::drain(const std::string& name) {
  Node* const node = living("node/reward");
  if (node == nullptr || !node->is_in() || node->context().transport == nullptr) return;
  boost::asio::co_spawn(node->context().scope->executor(), ask_to_leave(this, node, name), rethrow);
}

async::task<void> World::ask_to_leave(World* self, Node* node, std::string name) {
  const actors::RoleContext context = node->context().with_deadline(20s);
  actors::DrainNode request{name, 3000};
  auto asked = actors::ask(context, "company/0", std::move(request));
  auto answer = co_await std::move(asked);
  self->truth_.census.count("event", answer ? "drained" : "not drained");
  self->note(name + (answer ? " is drained" : " is not drained: " + answer.error().message));
}

// In every second seed its host crashes, with the local nodes; else those wait for the next head.
// The same command comes again.
void World::crash_head(core::Duration pause) {
  if (!head_lives()) return;
  Head& old = *std::exchange(head_, nullptr);
  old.kill();
  const bool host = plan_.seed % 2 == 1;
  for (const auto& node : nodes_) {
    if (host && node->self().host == kHeadHost && node->process().alive()) node->kill();
  }
  if (host) disk_.lose_unsynced();
  Node* const policy = living("node/policy");
  Node* const critic = living("node/critic");
  if (policy != nullptr && critic != nullptr)  // the head forwards what they say to each other
    links_.sever(policy->process(), critic->process(), "the head is gone");
  after(pause, [this, run = run_] {
    if (run == run_) start_head();
  });
}

// The run is lost with the processes of its host, and another one begins at its address, in a
// folder of its own. What is on other hosts outlives the first.
void World::begin_next_run() {
  if (outcome_) return;
  note("ANOTHER RUN");
  truth_.census.count("event", "another run");
  if (head_lives()) std::exchange(head_, nullptr)->kill();
  for (const auto& node : nodes_) {
    if (node->self().host == kHeadHost && node->process().alive()) node->kill();
  }
  disk_.clear();
  ++run_;
  heads_before_ = heads_.size();
  adoptions_.clear();
  truth_.begin_run();
  const core::Duration pause = stage_.soon(2s);
  last_fault_ = std::max(last_fault_, time_.now() + pause);
  after(pause, [this] { start_head(); });
}

void World::crash_in_write(const Process& process, core::Duration pause) {
  note("FAULT " + process.name() + " ends in the middle of a write");
  truth_.census.count("event", "crash in a write");
  last_fault_ = std::max(last_fault_, time_.now() + pause);
  const bool of_head = head_lives() && &head_->process() == &process;
  if (of_head || plan_.seed % 2 == 1) crash_head(pause);
  for (const auto& node : nodes_) {
    if (&node->process() == &process) node->kill();
  }
}

}  // namespace troupe::sim
