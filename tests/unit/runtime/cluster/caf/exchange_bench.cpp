// What a call between two processes costs: round trips a second with one and with eight calls under
// way, and the processor time of both processes for one call. Not a test; `ninja exchange_bench`,
// then bin/exchange_bench prints one JSON object a line, each the median of 3.
#include "tests/unit/runtime/cluster/caf/support.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace {

using namespace troupe;
using namespace troupe::cluster;
using namespace troupe::cluster::testing;

double own_cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

async::task<int> call_many(std::shared_ptr<Endpoint> self, std::string text, int count) {
  int right = 0;
  for (int i = 0; i < count; ++i) {
    auto answer = co_await ask(self, "node/a", text, kPatience);
    right += answer && answer->size() == text.size() ? 1 : 0;
  }
  co_return right;
}

struct Figure {
  double calls_per_s = 0, cpu_us = 0;
};

Figure measure(const std::shared_ptr<Endpoint>& self, std::size_t bytes, int lanes, int count) {
  const auto peer_cpu = [&self] { return std::stod(ask_now(self, "node/a", "cpu").value()); };
  const double cpu = own_cpu_us() + peer_cpu();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::future<int>> running;
  for (int lane = 0; lane < lanes; ++lane) {
    running.push_back(
        start_on(self->strand(), call_many(self, std::string(bytes, 'x'), count / lanes)));
  }
  int right = 0;
  for (auto& lane : running)
    right += lane.get();
  const std::chrono::duration<double> span = std::chrono::steady_clock::now() - begin;
  return {right / span.count(), (own_cpu_us() + peer_cpu() - cpu) / right};
}

}  // namespace

int main() {
  Troupe home;
  auto self = home.join("home/0");
  Peer peer({*home.exchange->listen(), "1", "node/a"});
  if (peer.line() != "ready" || home.events.wait("arrived node/a").empty()) return 1;
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{256} << 10}) {
    for (const int lanes : {1, 8}) {
      const int count = bytes > 100'000 ? 800 : 8000;
      std::vector<Figure> runs;
      for (int i = 0; i < 3; ++i)
        runs.push_back(measure(self, bytes, lanes, count));
      std::sort(runs.begin(), runs.end(),
                [](const Figure& a, const Figure& b) { return a.calls_per_s < b.calls_per_s; });
      std::printf(
          "{\"bytes\": %zu, \"lanes\": %d, \"calls_per_s\": %.0f, \"cpu_us_per_call\": %.0f}\n",
          bytes, lanes, runs[1].calls_per_s, runs[1].cpu_us);
    }
  }
}
