// One life of a node's process: it joins the company, plays roles, and ends: dismissed, given up,
// or killed. The real node role, in a simulated process. Owned by the world, which keeps it until
// it has unwound.
#pragma once

#include "tests/sim/world/maker.hpp"
#include "tests/sim/world/stage.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sim {

class Head;

inline constexpr const char* kOfAnotherRun = "belongs to another run";  // how a guest ends

class Node {
 public:
  struct Self {
    std::string name, host;
    std::vector<std::string> kinds;
    std::string pass;
    std::uint64_t epoch = 0;
    std::uint64_t run = 0;  // of a guest: that it belongs to, once it has joined one
    bool guest() const { return kinds.front() == "attach"; }
  };
  // The way to a head.
  struct Entrance {
    Head* head = nullptr;
    std::string pass;
    std::uint64_t epoch = 0;
  };
  struct Calls {
    // Called once, with how it ended; the process is gone then.
    std::function<void(Node& node, const std::string& how)> ended;
    // Where a node that has lost its head can enter now.
    std::function<std::optional<Entrance>(Node& node)> find_head;
  };
  Node(Stage& stage, Self self, std::uint64_t number, Head& head, Calls calls);
  ~Node();

  // Connects, introduces the node's role, and joins.
  void begin();
  // As SIGKILL does.
  void kill();
  // It has lost its company. It waits for the next head, if it has roles to keep.
  void left(const std::string& why);

  Process& process() noexcept { return process_; }
  const Self& self() const noexcept { return self_; }
  Head& head() noexcept { return *head_; }
  bool unwound() const noexcept { return unwound_; }
  bool is_in() const noexcept { return in_; }
  const actors::RoleContext& context() const noexcept { return context_; }

  // A reward that this node brings of its own.
  void bring(const std::string& role);

 private:
  actors::node::NodePorts ports();
  actors::Join join() const;
  void introduce(const cluster::Identity& identity, std::string pass);
  void leave(const std::string& how);
  static async::task<void> start(Node* self, std::shared_ptr<cluster::Endpoint> endpoint);
  static async::task<void> rejoin(Node* self);
  static async::task<void> start_brought(Node* self, std::string role);
  static async::task<void> unwind(Node* self);

  Stage& stage_;
  Self self_;
  Process process_;
  Head* head_;
  const Calls calls_;
  Maker maker_;
  std::unique_ptr<actors::node::HostedRoles> hosted_;
  std::shared_ptr<actors::node::NodeRole> role_;
  std::unique_ptr<cluster::RoleHost> host_, brought_;
  actors::RoleContext context_;
  std::uint64_t run_ = 0;    // that it is in, or was last
  bool crossed_ = false;     // it has come from another run
  int starting_ = 0;         // coroutines that start something
  core::TimePoint heard_{};  // when its company last answered
  std::string how_;          // it ended; "" while it lives
  bool in_ = false, was_in_ = false, waiting_ = false, told_ = false, unwinding_ = false,
       unwound_ = false;
};

}  // namespace troupe::sim
