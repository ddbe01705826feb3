// Processes that come and go, and the end of a run.
#include "tests/sim/world/world.hpp"

#include "actors/company/limits.hpp"
#include "actors/company/pass.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/async/run_on.hpp"
#include "tests/sim/world/fake_trainers.hpp"
#include "tests/sim/world/supervised.hpp"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <set>

namespace troupe::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kSteps = 50'000'000;

}  // namespace

World::World(WorldPlan plan, bool traced)
    : plan_(std::move(plan)),
      traced_(traced),
      network_(time_, plan_.seed, {}),
      rng_(plan_.seed, 5),
      links_(time_,
             network_,
             plan_.seed,
             truth_.census,
             [this](Process& at, Process& of, const std::string& why) {
               connection_lost(at, of, why);
             }),
      stage_{time_, network_, links_, truth_, disk_, plan_, rng_, team_, text_, gangs_, {}, {}} {
  network_.set_carrier(links_);
  stage_.note = [this](const std::string& line) { note(line); };
  stage_.process = [this](std::uint64_t number) -> const Process* {
    for (const auto& node : nodes_)
      if (node->process().number() == number) return &node->process();
    return nullptr;
  };
  links_.hears = [this](const Process& at, const Process& of, const cluster::Identity& from) {
    for (const auto& head : heads_)
      if (&head->process() == &at) return head->hears(of, from);
    return true;
  };
  links_.finds = [this](const Process& from,
                        const std::string& role) -> std::optional<const Process*> {
    for (const auto& head : heads_)
      if (&head->process() == &from) return head->player(role);
    return std::nullopt;
  };
  links_.role_ended = [this](Process& at, Process& of, const cluster::Identity& role) {
    for (const auto& head : heads_)
      if (&head->process() == &at) return head->role_ended(of, role);
    role_lost(at, role, "it has stopped");
  };
  if (traced_) links_.trace = [this](const std::string& line) { trace_.push_back(line); };
}

World::~World() = default;

void World::note(const std::string& line) {
  if (!traced_) return;
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(time_.now().time_since_epoch());
  trace_.push_back(std::to_string(us.count()) + " us " + line);
}

void World::after(core::Duration span, std::function<void()> what) {
  time_.schedule(time_.now() + span, std::move(what));
}

// ---- processes ---------------------------------------------------------------------------------

void World::start_head() {
  if (outcome_) return;
  Head::Calls calls;
  calls.launch = [this](Head& head, const Node::Self& self) { launch(head, self); };
  calls.kill = [this](const std::string& name) {
    after(0ms, [this, name] {
      if (Node* const node = living(name)) node->kill();
    });
  };
  calls.adopt = [this](Head& head, const Node::Self& self) { return adopt(head, self); };
  calls.over = [this](Head& head, core::Result<void> outcome) {
    note("the run is over: " + (outcome ? std::string("done") : outcome.error().message));
    outcome_ = std::move(outcome);
    ended_at_ = time_.now();
    head_ = nullptr;
    head.kill();
  };
  calls.progress = [this] { progressed(); };
  const std::uint64_t generation = heads_.size() - heads_before_ + 1;
  heads_.push_back(
      std::make_unique<Head>(stage_, ++processes_, run_, generation, std::move(calls)));
  head_ = heads_.back().get();
  head_->begin();
}

Node& World::add_node(Head& head, Node::Self self) {
  Node::Calls calls;
  calls.ended = [this](Node& node, const std::string& how) { node_ended(node, how); };
  calls.find_head = [this](Node& node) { return find_head(node); };
  nodes_.push_back(
      std::make_unique<Node>(stage_, std::move(self), ++processes_, head, std::move(calls)));
  nodes_.back()->begin();
  return *nodes_.back();
}

void World::launch(Head& head, const Node::Self& self) {
  after(20ms + stage_.soon(200ms), [this, &head, self] {
    if (&head == head_) add_node(head, self);
  });
}

bool World::adopt(Head& head, const Node::Self& self) {
  if (living(self.name) == nullptr) return false;
  adoptions_[self.name] = {&head, self.pass, self.epoch};
  return true;
}

bool World::way_to_head() const {
  return head_lives() && !head_->process().frozen() && links_.open(kFarHost, kHeadHost) &&
         links_.open(kHeadHost, kFarHost);
}

std::optional<Node::Entrance> World::find_head(Node& node) {
  if (node.self().host == kHeadHost) {
    auto told = adoptions_.extract(node.self().name);
    if (told.empty() || told.mapped().head != head_) return std::nullopt;
    return told.mapped();
  }
  if (!way_to_head()) return std::nullopt;
  const std::string pass = head_->issue_pass();
  return Node::Entrance{head_, pass, actors::company::facts_of_pass(pass)->number};
}

// A far node enters through the gateway, which gives it a pass; without a way to it, it tries
// again.
void World::start_far(const std::string& name, std::vector<std::string> kinds) {
  if (outcome_) return;
  const bool guest = kinds.front() == "attach";
  if (guest && !guest_wanted_) return;
  if (!way_to_head()) {
    after(500ms + stage_.soon(500ms), [this, name, kinds] { start_far(name, kinds); });
    return;
  }
  const std::string pass = head_->issue_pass();
  const std::uint64_t epoch = actors::company::facts_of_pass(pass)->number;
  add_node(*head_, {name, kFarHost, kinds, pass, epoch, guest ? guest_run_ : 0});
  if (guest) guest_step({RewardStep::Kind::kAttach, {}, guest_weight_});
}

void World::node_ended(Node& node, const std::string& how) {
  note(node.self().name + " " + how);
  const auto& self = node.self();
  if (self.host == kHeadHost) {
    // The head that started it watches it, or the one that has told it to come.
    const auto told = adoptions_.find(self.name);
    Head* const watches = told == adoptions_.end() ? &node.head() : told->second.head;
    if (told != adoptions_.end()) adoptions_.erase(told);
    after(stage_.soon(100ms), [this, watches, name = self.name, how] {
      if (watches == head_) head_->exited(name, how);
    });
    return;
  }
  if (self.guest()) guest_run_ = self.run;
  if (how == kOfAnotherRun) truth_.census.count("event", "a guest does not follow another run");
  if (how == "was dismissed" || how == kOfAnotherRun) {
    if (self.guest()) guest_wanted_ = false;
    return;
  }
  after(300ms + stage_.soon(700ms),
        [this, name = self.name, kinds = self.kinds] { start_far(name, kinds); });
}

Node* World::living(const std::string& name) {
  for (const auto& node : nodes_) {
    if (node->self().name == name && node->process().alive()) return node.get();
  }
  return nullptr;
}

void World::role_lost(Process& at, const cluster::Identity& role, const std::string& why) {
  const core::Error cause{core::ErrorCode::kPeerLost, role.self + " is lost: " + why};
  for (const auto& [name, endpoint] : at.roles()) {
    async::post(endpoint->strand(), [endpoint = endpoint, role, cause] {
      endpoint->on_peer_lost(role.self, cause, role.epoch);
    });
  }
}

void World::connection_lost(Process& at, Process& of, const std::string& why) {
  for (const auto& [name, other] : of.roles())
    role_lost(at, other->identity(), why);
  for (const auto& head : heads_)
    if (&head->process() == &at) return head->connection_lost(of);
  for (const auto& node : nodes_) {
    if (&node->process() == &at && &node->head().process() == &of) return node->left(why);
  }
}

// ---- a reward that comes and goes --------------------------------------------------------------

void World::begin_guest(double weight) {
  guest_wanted_ = true;
  guest_weight_ = weight;
  start_far("node/guest", {"attach"});
}

// The commands that users type; what they answer is not looked at, since any of them may come in
// the wrong moment. A guest that comes back attaches its reward again.
void World::guest_step(RewardStep step) {
  if (outcome_ || !guest_wanted_) return;
  Node* const node = living("node/guest");
  if (node == nullptr || !node->is_in() || node->context().transport == nullptr) {
    return after(300ms, [this, step] { guest_step(step); });
  }
  boost::asio::co_spawn(node->context().scope->executor(), ask_company(this, node, step), rethrow);
}

async::task<void> World::ask_company(World* self, Node* node, RewardStep step) {
  const actors::RoleContext context = node->context().with_deadline(20s);
  if (step.kind == RewardStep::Kind::kAttach) node->bring("reward/guest");
  core::Result<actors::RewardsChanged> changed = actors::RewardsChanged{};
  const auto before = std::exchange(self->truth_.promise, std::nullopt);
  if (step.kind == RewardStep::Kind::kAttach) {
    actors::AttachReward request{"guest", "reward/guest", step.weight};
    changed = co_await actors::ask(context, "company/0", std::move(request));
  } else if (step.kind == RewardStep::Kind::kReweight) {
    actors::ReweightReward request{"guest", step.weight};
    changed = co_await actors::ask(context, "company/0", std::move(request));
  } else {
    actors::DetachReward request{"guest"};
    changed = co_await actors::ask(context, "company/0", std::move(request));
  }
  self->truth_.census.count("reward", changed ? "changed" : "refused");
  // Of a request that comes twice, the refusal of the second may be heard first, and what was
  // refused the first time may take effect the second time.
  const bool repeats = self->plan_.has(Fault::Kind::kRepeat);
  if (!changed && repeats) self->certain_rewards_ = false;
  const bool attached = before && before->weight != 0 && !repeats;
  self->truth_.expect(changed || !attached || step.kind != RewardStep::Kind::kDetach ||
                          changed.error().code != core::ErrorCode::kInvalidArgument,
                      "a reward that is attached cannot be detached");
  // A reward that is lost leaves its set, and a head that dies forgets.
  if (changed && self->certain_rewards_ && self->plan_.faults_spare_rewards())
    self->truth_.promise = {changed->from_update, step.weight};
  self->note(changed ? "rewards changed" : "rewards: " + changed.error().message);
  if (changed || step.kind != RewardStep::Kind::kAttach || !node->process().alive()) co_return;
  self->after(1s, [self, step] { self->guest_step(step); });
}

// ---- the run -----------------------------------------------------------------------------------

void World::run() {
  start_head();
  for (const std::string& name : plan_.far_nodes)
    after(100ms + stage_.soon(900ms), [this, name] { start_far(name, {"generator"}); });
  if (plan_.far_rank)
    after(100ms + stage_.soon(900ms), [this] { start_far(kRankNode, {"policy"}); });
  for (const Fault& fault : plan_.faults)
    after(fault.at, [this, fault] { inject(fault); });
  if (plan_.next_run > 0ms) after(plan_.next_run, [this] { begin_next_run(); });
  for (const RewardStep& step : plan_.rewards) {
    after(step.at, [this, step] {
      if (step.kind == RewardStep::Kind::kAttach) return begin_guest(step.weight);
      guest_step(step);
    });
  }
  while (!outcome_ && truth_.wrong().empty())
    watch();
  ended_at_ = time_.now();
  check_end();
}

// Something must be learned or restarted within kProgress after the last fault.
void World::watch() {
  const std::uint64_t poisonings = truth_.poisonings();
  truth_.expect(time_.run_for(1s, kSteps), "the world does not come to rest within a second");
  // A generator that fails again and again starts later each time.
  if (truth_.poisonings() > poisonings)
    last_fault_ = std::max(last_fault_, time_.now() + actors::company::limits::kSickPause_max);
  const core::TimePoint since = std::max(last_fault_, last_progress_);
  truth_.expect(outcome_ || time_.now() - since < kProgress,
                "no progress within 60 s after the last fault");
}

void World::check_end() {
  const bool ended = outcome_.has_value();
  if (ended && truth_.wrong().empty()) {
    truth_.expect(outcome_->has_value(),
                  "the run ended: " + (*outcome_ ? "" : outcome_->error().message));
    if (*outcome_) plan_.supervised() ? check_steps() : check_ledger();
  }
  // Everybody goes.
  outcome_ = outcome_.value_or(core::Result<void>());
  for (const auto& head : heads_)
    head->kill();
  head_ = nullptr;
  const core::TimePoint awake = std::max(time_.now(), last_fault_);  // who is frozen till then
  const bool quiet = time_.run_for(awake - time_.now() + 70s, kSteps);
  const bool left = std::any_of(nodes_.begin(), nodes_.end(),
                                [](const auto& node) { return node->process().alive(); });
  for (const auto& node : nodes_)
    node->kill();
  truth_.expect(quiet && time_.run_until_quiet(kSteps), "the world does not come to rest");
  truth_.expect(!left, "a process is left after the run");
  truth_.expect(network_.open() == 0, "a request has had no outcome");
  for (const auto& node : nodes_)
    truth_.expect(node->unwound(), node->self().name + " does not unwind");
  for (const auto& head : heads_)
    truth_.expect(head->unwound(), "a head does not unwind");
}

std::string World::last_checkpoint() const {
  const auto all = disk_.folders_in(kCheckpoints);
  return all.empty() ? "" : std::string(kCheckpoints) + "/" + all.back();
}

std::string World::learned() const {
  const std::string last = last_checkpoint();
  std::string learned = disk_.read(last + "/policy/state");
  if (plan_.supervised()) learned += disk_.read(last + "/model/model") + disk_.read(kStepsFile);
  return learned;
}

// Each step and each evaluation that is due was told once, in order, and the last checkpoint has
// all of them and a model.
void World::check_steps() {
  std::vector<StepLine> lines = read_steps(disk_.read(kStepsFile));
  const std::uint64_t scale = plan_.scores && !lines.empty() ? lines.back().figure : 0;
  for (StepLine& line : lines)
    line.figure = 0;
  truth_.expect(lines == due_steps(plan_), "other steps and evaluations than the run has");
  const std::string last = last_checkpoint();
  const auto learned = Learned::of(disk_.read(last + "/policy/state"));
  truth_.expect(learned && learned->updates.size() == plan_.updates,
                "the last checkpoint has not all steps");
  const std::string scaled = "scale " + std::to_string(scale) + "\n";
  truth_.expect(disk_.read(last + "/model/model").ends_with(scaled),
                "there is no model at the end, or it has another scale of scores");
}

void World::check_ledger() {
  const auto lines = read_ledger(disk_.read(kLedger));
  std::set<std::pair<std::uint64_t, std::uint32_t>> slots;
  std::set<std::uint64_t> positions;
  std::map<std::uint64_t, std::uint64_t> hashes;
  for (const LedgerLine& line : lines) {
    truth_.expect(slots.emplace(line.update, line.slot).second, "a slot is in the ledger twice");
    std::vector<std::uint64_t> taken = line.replaced;
    taken.push_back(line.position);
    for (const std::uint64_t position : taken)
      truth_.expect(positions.insert(position).second, "a prompt was used twice");
    auto& hash = hashes.try_emplace(line.update, line.update).first->second;
    hash = mix(hash, line.hash);
  }
  truth_.expect(slots.size() == plan_.updates * plan_.groups, "a slot is missing in the ledger");
  const bool gapless = !positions.empty() && *positions.rbegin() + 1 == positions.size();
  truth_.expect(gapless, "a prompt was skipped");
  const auto learned = Learned::of(this->learned());
  truth_.expect(learned.has_value(), "there is no last checkpoint");
  if (!learned) return;
  truth_.expect(learned->updates.size() == plan_.updates, "not all updates were learned");
  for (std::uint64_t update = 0; update < learned->updates.size(); ++update) {
    truth_.expect(hashes[update] == learned->updates[update],
                  "update " + std::to_string(update + 1) +
                      " was learned from other groups than the ledger has");
  }
}

}  // namespace troupe::sim
