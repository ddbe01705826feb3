// Two network namespaces joined by a cable: what two hosts are to the network stack. A third one
// has a cable to the first alone, and no way to the second. They have no names, so nothing of them
// is left once the test and its processes are gone. Needs root; a test that finds `why_not` says so
// and is skipped.
#pragma once

#include "tests/integration/processes.hpp"

#include <fcntl.h>

namespace troupe::test {

class TwoHosts {
 public:
  TwoHosts() {
    if (::geteuid() != 0) {
      why_not_ = "needs root, to make network namespaces";
      return;
    }
    a_ = fresh_network();
    b_ = fresh_network();
    if (a_ < 0 || b_ < 0) {
      why_not_ = "cannot make network namespaces here";
      return;
    }
    const std::string far = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(b_);
    const bool wired = ip(a_, "link set lo up") && ip(b_, "link set lo up") &&
                       ip(a_, "link add cable type veth peer name cable netns " + far) &&
                       ip(a_, "addr add " + address_a() + "/24 dev cable") &&
                       ip(b_, "addr add " + address_b() + "/24 dev cable") &&
                       ip(a_, "link set cable up") && ip(b_, "link set cable up");
    if (!wired) why_not_ = "`ip` cannot join two network namespaces here";
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;
  ~TwoHosts() {
    if (a_ >= 0) ::close(a_);
    if (b_ >= 0) ::close(b_);
    if (c_ >= 0) ::close(c_);
  }

  const std::string& why_not() const { return why_not_; }
  int a() const { return a_; }
  int b() const { return b_; }
  static std::string address_a() { return "10.213.77.1"; }
  static std::string address_b() { return "10.213.77.2"; }

  // The third host, which reaches the address of the first.
  bool add_third() {
    c_ = fresh_network();
    const std::string far = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(c_);
    return c_ >= 0 && ip(c_, "link set lo up") &&
           ip(a_, "link add wire type veth peer name wire netns " + far) &&
           ip(a_, "addr add 10.213.78.1/24 dev wire") &&
           ip(c_, "addr add 10.213.78.3/24 dev wire") && ip(a_, "link set wire up") &&
           ip(c_, "link set wire up") && ip(c_, "route add 10.213.77.1/32 via 10.213.78.1");
  }
  int c() const { return c_; }

  bool unplug() { return ip(b_, "link set cable down"); }
  bool plug() { return ip(b_, "link set cable up"); }
  // A thin cable ("1mbit"), both ways.
  bool slow(const std::string& rate) {
    const std::string words =
        "tc qdisc add dev cable root tbf burst 32kbit latency 400ms rate " + rate;
    return done(a_, words) && done(b_, words);
  }

 private:
  // A thread of its own goes there, so that the test stays where it is.
  static int fresh_network() {
    int descriptor = -1;
    std::thread([&] {
      if (::unshare(CLONE_NEWNET) == 0) {
        descriptor = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
      }
    }).join();
    return descriptor;
  }
  static bool ip(int network, const std::string& words) { return done(network, "ip " + words); }
  static bool done(int network, const std::string& words) {
    std::vector<std::string> all;
    std::istringstream in(words);
    for (std::string word; in >> word;)
      all.push_back(word);
    const ScratchFolder scratch;
    Background command(all, scratch / "ip.log", network);
    const auto status = command.wait(10);
    return status == 0;
  }

  int a_ = -1, b_ = -1, c_ = -1;
  std::string why_not_;
};

}  // namespace troupe::test
