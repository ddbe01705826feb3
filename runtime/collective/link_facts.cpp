#include "runtime/collective/link_facts.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>

namespace troupe::collective {
namespace {

using std::to_string;

bool on_one_host(const std::vector<LinkFacts>& all) {
  return std::all_of(all.begin(), all.end(),
                     [&all](const LinkFacts& one) { return one.host == all[0].host; });
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address != nullptr && address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                sizeof text);
  if (address != nullptr && address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                sizeof text);
  return text;
}

// The interface that has the address; empty if none has.
std::string interface_of(const std::string& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::string name;
  for (const ifaddrs* one = all; one != nullptr && name.empty(); one = one->ifa_next)
    if (text_of(one->ifa_addr) == address) name = one->ifa_name;
  ::freeifaddrs(all);
  return name;
}

}  // namespace

LinkFacts facts_of(const RankOptions& options) {
  LinkFacts facts;
  facts.host = options.host_id;
  facts.trusts = !options.tcp_host.empty();
  return facts;
}

std::string obstacle_to_link(const std::vector<LinkFacts>& all) {
  const bool one_host = on_one_host(all);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const LinkFacts& one = all[rank];
    const std::string name = "rank " + to_string(rank);
    if (!one.why_not.empty()) return name + ": " + one.why_not.text();
    if (!(one.name == all[0].name))
      return "rank 0 has " + all[0].name.text() + ", " + name + " " + one.name.text();
    if (!one_host && !one.trusts)
      return "the ranks are on several hosts, and " + name + " has no address on a trusted network";
    for (std::size_t lower = 0; lower < rank; ++lower) {
      if (all[lower].host == one.host && all[lower].device == one.device)
        return "ranks " + to_string(lower) + " and " + to_string(rank) + " are both on " +
               one.device.text();
    }
  }
  return {};
}

std::string interface_for_link(const RankOptions& options, const std::vector<LinkFacts>& all) {
  if (on_one_host(all)) return "=lo";
  const std::string name = interface_of(options.tcp_host);
  return name.empty() ? "" : "=" + name;
}

std::string first_failure(const std::vector<LinkOutcome>& all) {
  std::string first;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].why_not.empty()) continue;
    const std::string words = "rank " + to_string(rank) + ": " + all[rank].why_not.text();
    if (!all[rank].heard) return words;
    if (first.empty()) first = words;
  }
  return first;
}

}  // namespace troupe::collective
