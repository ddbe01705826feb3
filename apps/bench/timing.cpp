#include "apps/bench/timing.hpp"

#include "apps/bench/figures.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace troupe::bench {
namespace {

constexpr double kRepetition_s = 0.1;

}  // namespace

double seconds_of(core::TeamRunner& team, const TimedWork& work, int at_once) {
  const int calls = team.memory().on_host() ? 1 : at_once;
  std::int64_t first = 0;
  const auto several = [&](core::Team member) {
    for (int each = 0; each < calls; ++each)
      work(member, first + each);
  };
  team.run(several);
  team.memory().wait();
  const std::unique_ptr<core::Recording> recorded = team.record(several);
  const auto submit = [&] {
    if (recorded != nullptr) return recorded->submit();
    first += calls;
    team.run(several);
  };
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    int count = 0;
    const Stopwatch watch;
    double elapsed = 0;
    for (; elapsed < kRepetition_s; ++count) {
      submit();
      team.memory().wait();
      elapsed = watch.seconds();
    }
    seconds.push_back(elapsed / count / calls);
  }
  return median(std::move(seconds));
}

}  // namespace troupe::bench
