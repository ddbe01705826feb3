#include "apps/troupe/join_as_node.hpp"

#include "actors/limits.hpp"
#include "apps/session/node/relay_gate.hpp"
#include "apps/session/node/tunnel_subscriber.hpp"
#include "apps/troupe/ask_company.hpp"
#include "apps/troupe/reentry_waits.hpp"

#include <linux/close_range.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace troupe::app {

using core::ErrorCode;
using core::Result;

void start_over() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');)
    words.push_back(word);
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  ::execv("/proc/self/exe", pointers.data());
  ::_exit(kWedged);
}

namespace {

// Joins the company through a tunnel to its gateway, and stays until the node ends.
Result<NodeEnd> stay(const JoinTarget& target,
                     const NodePlace& place,
                     const std::shared_ptr<actors::LogBacklog>& log) {
  const NodeSelf& self = place.self;
  async::IoThreads io(1);
  TROUPE_TRY_ASSIGN(gate, RelayGate::open(io, target, place.relay));
  NodeCalls calls;
  calls.maker = [&io, &target, &gate = *gate, &place](actors::AskToMeet meet) {
    auto reach = [&io, &target](std::shared_ptr<weights::WeightSubscriber> inner) {
      return std::make_shared<TunnelSubscriber>(io, target, std::move(inner));
    };
    collective::GatewayWay gateway{&io, target.host, target.port, target.auth, say};
    auto loader = std::make_unique<RoleLoader>(std::move(reach), std::move(meet), gate.options(),
                                               std::move(gateway));
    if (place.prepare) place.prepare(*loader);
    return loader;
  };
  calls.note = say;
  calls.log = log;
  calls.end_now = &start_over;
  calls.find_again = [&io, &target] { return enter_company(io, target); };
  calls.once_in = [&](NodeGuest) -> Result<bool> {
    say(self.name + " is in the company of " + target.name());
    return true;
  };
  return live_through_gateway(io, target, self, calls);
}

// Errors that no retry can mend.
bool is_final(ErrorCode code) {
  return code == ErrorCode::kConfig || code == ErrorCode::kUnsupported;
}

}  // namespace

Result<void> join_as_node(const NodePlace& place) {
  const NodeSelf& self = place.self;
  TROUPE_TRY_ASSIGN(target, find_company(place.join));
  const core::Failure interrupted = core::fail(ErrorCode::kInterrupted, "interrupted");
  const auto log = overheard();
  ReentryWaits waits;
  std::string last;
  bool taken = false;  // the company has a node of this name
  std::chrono::steady_clock::time_point since;
  for (;;) {
    auto end = stay(target, place, log);
    // The name may be held by an earlier connection of this node, which the company soon drops. If
    // it stays taken, another node has it.
    if (end || end.error().code != ErrorCode::kInvalidArgument) {
      taken = false;
    } else if (const auto now = std::chrono::steady_clock::now(); !taken) {
      taken = true;
      since = now;
    } else if (now - since > 2 * actors::limits::kFrozenAfter) {
      return core::fail(ErrorCode::kConfig,
                        "the company of " + target.name() + " does not take " + self.name + ": " +
                            end.error().message,
                        "give this node another --name");
    }
    if (end && *end == NodeEnd::kDismissed) {
      say("the company has dismissed " + self.name + "; it ends");
      return {};
    }
    if (end && *end == NodeEnd::kStopped) return interrupted;
    if (!end && is_final(end.error().code)) return end.failure();
    std::string why = end ? "the company went away" : end.error().message;
    if (taken) why = "the company does not take " + self.name + " yet";
    if (why != last) say(why + "; trying again until it is there (Ctrl-C ends this)");
    last = why;
    if (!waits.next(end.has_value())) return interrupted;
  }
}

}  // namespace troupe::app
