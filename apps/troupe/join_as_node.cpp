#include "apps/troupe/join_as_node.hpp"

#include "apps/session/node/relay_gate.hpp"
#include "apps/session/node/tunnel_subscriber.hpp"
#include "apps/troupe/ask_company.hpp"
#include "apps/troupe/rejoining.hpp"

#include <linux/close_range.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace troupe::app {

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
Result<session::NodeEnd> stay(const NodePlace& place,
                              const std::shared_ptr<actors::node::LogBacklog>& log,
                              Rejoining& rejoining) {
  TROUPE_TRY_ASSIGN(target, rejoining.find());
  const session::NodeSelf self = rejoining.bound(place.self, target);
  async::IoThreads io(1);
  TROUPE_TRY_ASSIGN(gate, session::RelayGate::open(io, target, place.relay));
  session::NodeCalls calls;
  calls.maker = [&io, &target, &gate = *gate, &place](actors::gang::AskToMeet meet) {
    auto reach = [&io, &target](std::shared_ptr<weights::WeightSubscriber> inner) {
      return std::make_shared<session::TunnelSubscriber>(io, target, std::move(inner));
    };
    collective::GatewayWay gateway{&io, target.host, target.port, target.auth, cli::say};
    auto loader = std::make_unique<session::RoleLoader>(std::move(reach), std::move(meet),
                                                        gate.options(), std::move(gateway));
    if (place.prepare) place.prepare(*loader);
    return loader;
  };
  calls.note = cli::say;
  calls.log = log;
  calls.end_now = &start_over;
  calls.find_again = [&io, &target] { return session::enter_company(io, target); };
  calls.may_wait = [&rejoining] { return rejoining.may_wait(); };
  calls.patience = rejoining.patience();
  calls.once_in = [&](const session::NodeGuest& guest) -> Result<bool> {
    rejoining.joined(guest);
    cli::say(self.name + " is in the company of " + target.name());
    return true;
  };
  return session::live_through_gateway(io, target, self, calls);
}

}  // namespace

Result<void> join_as_node(const NodePlace& place) {
  const std::string& name = place.self.name;
  const auto log = overheard();
  Rejoining rejoining({name, place.join, place.one_run, true, place.wait_s, "",
                       "the company has dismissed " + name + "; it ends"});
  for (;;) {
    auto end = stay(place, log, rejoining);
    if (auto over = rejoining.next(end)) return *over;
  }
}

}  // namespace troupe::app
