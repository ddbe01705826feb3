// One run of a whole company on virtual time: hosts, links, processes, a head that may die, far
// nodes that come back by themselves, a guest that attaches a reward, and the faults of a plan.
// Then it says what did not hold:
//   no ticket lost or trained twice, each update in its turn, no token older than the bound, scores
//   of the right set, one outcome a request, the ledger whole, nothing left behind, and progress
//   within kProgress after the last fault. At bound 0 the policy learns what it learns without
//   faults. A run that comes to the address of another begins anew, with a folder of its own, with
//   the far nodes, and without what was attached to the other.
// Of a supervised run: each step from its own rows, in its turn, and told once; each evaluation
// once, with the figures that it had before; the end is that of a run without faults.
#pragma once

#include "tests/sim/world/head.hpp"
#include "tests/sim/world/node.hpp"
#include "tests/sim/world/plan.hpp"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

class World {
 public:
  static constexpr core::Duration kProgress = std::chrono::seconds(60);

  // `traced`: keeps a line for each frame and note.
  explicit World(WorldPlan plan, bool traced = false);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  void run();

  // What did not hold; empty when all is well.
  const std::vector<std::string>& wrong() const { return truth_.wrong(); }
  const Census& census() const { return truth_.census; }
  const std::vector<std::string>& trace() const { return trace_; }
  // What the policy has learned at the end; of a supervised run also its model and its figures.
  std::string learned() const;
  core::Duration took() const { return ended_at_.time_since_epoch(); }
  std::uint64_t steps() const { return time_.steps(); }

 private:
  void start_head();
  void launch(Head& head, const Node::Self& self);
  bool adopt(Head& head, const Node::Self& self);
  std::optional<Node::Entrance> find_head(Node& node);
  bool way_to_head() const;
  void start_far(const std::string& name, std::vector<std::string> kinds);
  Node& add_node(Head& head, Node::Self self);
  void node_ended(Node& node, const std::string& how);
  void role_lost(Process& at, const cluster::Identity& role, const std::string& why);
  void connection_lost(Process& at, Process& of, const std::string& why);
  Node* living(const std::string& name);
  bool head_lives() const { return head_ != nullptr; }

  void inject(const Fault& fault);
  void crash_head(core::Duration pause);
  void begin_next_run();
  void crash_in_write(const Process& process, core::Duration pause);
  void each_far(const std::function<void(Node&)>& what);
  void flap(std::uint64_t times, core::Duration span);
  void freeze(Process& process, core::Duration span);
  void cut(bool there, bool back, bool cut);
  void after(core::Duration span, std::function<void()> what);

  void strike_rank(const Fault& fault);
  void drain(const std::string& name);
  static async::task<void> ask_to_leave(World* self, Node* node, std::string name);

  void begin_guest(double weight);
  void guest_step(RewardStep step);
  static async::task<void> ask_company(World* self, Node* node, RewardStep step);

  void progressed() { last_progress_ = time_.now(); }
  void watch();
  void check_end();
  void check_ledger();
  void check_steps();
  std::string last_checkpoint() const;
  void note(const std::string& line);

  const WorldPlan plan_;
  const bool traced_;
  std::vector<std::string> trace_;
  VirtualTime time_;
  SimNetwork network_;
  core::Rng rng_;
  Truth truth_;
  SimDisk disk_;
  core::SerialTeam team_;
  Numbers text_;
  Gangs gangs_;
  Links links_;
  Stage stage_;
  std::list<std::unique_ptr<Node>> nodes_;  // those that ended, too
  std::list<std::unique_ptr<Head>> heads_;
  Head* head_ = nullptr;                             // the one that lives
  std::uint64_t run_ = kRun;                         // of the heads from now on
  std::size_t heads_before_ = 0;                     // of the runs before
  std::map<std::string, Node::Entrance> adoptions_;  // by node, told and not heard yet
  std::uint64_t processes_ = 0;
  bool guest_wanted_ = false;
  bool certain_rewards_ = true;  // no refused change of rewards may come again
  double guest_weight_ = 1;
  std::uint64_t guest_run_ = 0;  // that it belongs to
  std::optional<core::Result<void>> outcome_;
  core::TimePoint last_fault_{}, last_progress_{}, ended_at_{};
};

}  // namespace troupe::sim
